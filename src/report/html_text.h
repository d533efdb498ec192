// Text in a page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "warpsmith/stats/interval.h"

namespace warpsmith::report {

// For text and for values of attributes in `"`. Control characters, bytes that are no UTF-8, and characters
// that turn the direction of text are shown as terminal_text() shows them: some are not allowed in a page.
std::string escape(std::string_view text);
std::string percent(double share);  // "12.5 %"
// "12.5 % [10.0, 15.2]", "1.25× [1.20, 1.31]"; without an interval the value alone.
std::string with_interval(double share, const std::optional<stats::Interval>& interval);
std::string speedup_with_interval(double speedup, const std::optional<stats::Interval>& interval);
std::string times(double speedup);  // "1.25×"
std::string microseconds(double ns);
std::string range_words(std::int64_t least, std::int64_t most);  // "4", "3–4"
std::string group_title(const std::string& group);               // "trained tasks"

}  // namespace warpsmith::report

// Text in a page.
#pragma once

#include <string>
#include <string_view>

namespace warpsmith::report {

// For text and for values of attributes in `"`. Control characters, bytes that are no UTF-8, and characters
// that turn the direction of text are shown as terminal_text() shows them: some are not allowed in a page.
std::string escape(std::string_view text);
std::string percent(double share);  // "12.5 %"

}  // namespace warpsmith::report

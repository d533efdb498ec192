// Text in a page.
#pragma once

#include <string>
#include <string_view>

namespace warpsmith::report {

std::string escape(std::string_view text);
std::string percent(double share);  // "12.5 %"

}  // namespace warpsmith::report

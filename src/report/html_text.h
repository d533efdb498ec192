// Text in a page.
#pragma once

#include <string>
#include <string_view>

namespace warpsmith::report {

std::string escape(std::string_view text);

}  // namespace warpsmith::report

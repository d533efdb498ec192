// How doctor's messages about a site are worded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace warpsmith::executor {

std::string listed(
    const std::vector<std::string>& words);       // "a, b, c", and how many more where they are many
std::string show_minutes(std::uint32_t minutes);  // as a site file says it: "2d", "12h", "90m"

}  // namespace warpsmith::executor

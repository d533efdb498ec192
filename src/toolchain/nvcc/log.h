// What nvcc and the programs below it print, as the candidate's author should see it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::toolchain {

// Errors alone, each "file.cu:line:column: error: …" with the candidate's own place; nothing of this machine.
// Cut to `limit` bytes. `files`: of the candidate; what is in none of them is told of the first.
std::string readable_nvcc_log(std::string_view log, const std::vector<std::string>& files, std::size_t limit);

}  // namespace warpsmith::toolchain

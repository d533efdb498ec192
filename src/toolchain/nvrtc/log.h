// What NVRTC prints, as the candidate's author should see it.
#pragma once

#include <string>
#include <string_view>

namespace warpsmith::toolchain {

// Errors alone, each "kernel.cu:line:column: error: …" with the candidate's own place; nothing of this
// machine. Cut to `limit` bytes.
std::string readable_nvrtc_log(std::string_view log, std::size_t limit);

}  // namespace warpsmith::toolchain

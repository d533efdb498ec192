// What the linker and the assembler behind g++ say, which know of no line of the source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rewrite.h"

namespace warpsmith::toolchain {

// Errors as "kernel.cu:12:3: error: …", each once, at the place where the source first names what is at
// fault.
std::vector<std::string> linker_errors(std::string_view output, const Rewritten& rewritten);

}  // namespace warpsmith::toolchain

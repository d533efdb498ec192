// What g++ prints, as the candidate's author should see it.
#pragma once

#include <string>
#include <string_view>

#include "rewrite.h"

namespace warpsmith::toolchain {

// Where all that the compiler misses are names that CUDA has and the twin lacks, throws SourceProblem with
// the first of them, `unsupported`. Otherwise: errors first, each "kernel.cu:line:column: error: …" with the
// candidate's own place; nothing of our header or this machine. Cut to `limit` bytes.
std::string readable_log(std::string_view compiler_output, const Rewritten& rewritten, std::size_t limit);

}  // namespace warpsmith::toolchain

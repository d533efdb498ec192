// What a candidate for a GPU may not have: includes other than CUDA's, and what would hide them. Everything
// else is NVRTC's to accept. And the headers of ours that NVRTC lacks.
#pragma once

#include <map>
#include <string>

#include "tokens.h"

namespace warpsmith::toolchain {

// `toolkit_headers`: crt/ is among CUDA's headers, which mma.h wants and torch's wheel lacks. Throws
// SourceProblem.
void refuse_for_gpu(const CleanSource& source, bool toolkit_headers);

// stdint.h, math.h, float.h, …: NVRTC has what they declare, or they hold it; by name. CUDA's own headers
// find these, too.
const std::map<std::string, std::string>& headers_for_nvrtc();
// The one that stands in front of every candidate: constants and integer types that nvcc has at hand.
inline constexpr const char* kAlwaysIncluded = "warpsmith_always.h";

// Whether it includes something of CUDA's C++ library (<cuda/…>, <cub/…>).
bool uses_cuda_library(const CleanSource& source);

}  // namespace warpsmith::toolchain

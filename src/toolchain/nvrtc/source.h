// What a candidate for a GPU may not have: includes other than CUDA's, and what would hide them. Everything
// else is NVRTC's to accept. And the headers of ours that NVRTC lacks.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "../common/tokens.h"

namespace warpsmith::toolchain {

// Which of the headers that a candidate may include are here.
using HasHeader = std::function<bool(std::string_view name)>;
// Takes out what stands below a literal `#if 0`, to its `#else`, `#elif` or `#endif`: nobody has to look at
// what no compiler gets to see. Lines stay where they are. Throws SourceProblem.
void drop_dead_text(CleanSource* source);

// Throws SourceProblem; where the candidate wants a header of CUDA's that is not here, one of `unsupported`.
void refuse_for_gpu(const CleanSource& source, const HasHeader& has_header);

// stdint.h, math.h, float.h, …: NVRTC has what they declare, or they hold it; by name. CUDA's own headers
// find these, too.
const std::map<std::string, std::string>& headers_for_nvrtc();
// The one that stands in front of every candidate: constants and integer types that nvcc has at hand.
inline constexpr const char* kAlwaysIncluded = "warpsmith_always.h";

// Whether it includes something of CUDA's C++ library (<cuda/…>, <cub/…>).
bool uses_cuda_library(const CleanSource& source);

}  // namespace warpsmith::toolchain

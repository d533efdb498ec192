// Whether a candidate is CUDA at all, by NVRTC, without making machine code: a third of what that costs.
#pragma once

#include "compile_cache.h"
#include "compile_unit.h"

namespace warpsmith::toolchain {

struct NvrtcWord {
  enum Kind { kTakes, kNewer, kRefuses, kNothing };
  Kind kind =
      kNothing;  // kNewer: of the targets that were asked only newer ones take it; kNothing: a limit ended it
  CompileResult refusal;  // of kRefuses
  // Of kTakes: the assembler may still refuse it, for its shared or constant memory.
  bool wants_assembler = false;
};
// For compute capability 8.0, which the twin declares (__CUDA_ARCH__), and newer ones where that one refuses.
// Throws SourceProblem as make_nvrtc_request() does, and Error where there is no NVRTC.
NvrtcWord ask_nvrtc(const Candidate& candidate, const ModuleNames& names, const CompileOptions& options,
                    const Scratch& scratch);

}  // namespace warpsmith::toolchain

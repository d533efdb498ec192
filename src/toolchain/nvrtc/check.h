// Whether a candidate is CUDA at all, by NVRTC, without making machine code: a third of what that costs.
#pragma once

#include "../common/compile_unit.h"
#include "server.h"

namespace warpsmith::toolchain {

struct NvrtcWord {
  enum Kind { kTakes, kNewer, kRefuses, kNothing };
  Kind kind =
      kNothing;  // kNewer: of the targets that were asked only newer ones take it; kNothing: a limit ended it
  CompileResult refusal;  // of kRefuses
  // Of kTakes: the assembler may still refuse it, for its shared or constant memory.
  bool wants_assembler = false;
};
// Asks about one candidate after another. Of one thread.
class NvrtcCheck {
 public:
  explicit NvrtcCheck(const CompileOptions& options);
  // For compute capability 8.0, which the twin declares (__CUDA_ARCH__), and newer ones where that one
  // refuses. Throws SourceProblem as make_nvrtc_request() does, and Error where there is no NVRTC.
  NvrtcWord ask(const Candidate& candidate, const ModuleNames& names);

 private:
  std::uint64_t log_bytes_;
  NvrtcServer server_;
};

}  // namespace warpsmith::toolchain

// Which of the kernels that a candidate ran are its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/device/extension_session.h"
#include "warpsmith/records/candidate.h"

namespace warpsmith::measure {

// Names of the kernels that the sources declare: functions behind `__global__`, and Python functions under
// `triton.jit`. Comments of C++ do not count. A name that a macro pastes together is not found.
class OwnKernels {
 public:
  explicit OwnKernels(const Candidate& candidate);
  // `name`: as CUPTI tells it, mangled or plain. A kernel in a namespace is own where the sources declare
  // that namespace, too: what they instantiate from CUB's or CUTLASS's headers is not.
  bool has(const std::string& name) const;
  // Of the kernels' time, the share that is in own ones; nothing where there is no kernel.
  std::optional<double> share_of(const std::vector<device::ExtensionKernel>& kernels) const;
  // "own k 82 %, sm90_xmma_gemm_f32f32 18 %": the longest ones by their plain names.
  std::string told(const std::vector<device::ExtensionKernel>& kernels) const;

 private:
  std::vector<std::string> kernels_, namespaces_;
};

}  // namespace warpsmith::measure

// Baseline `cudnn`: the one operator of cuDNN that a task says it is, called directly.
//
// The library is the one that torch has loaded. Outputs lie in memory of their own for each call, as a
// program's would; no descriptor is made and no algorithm chosen inside the clock. Math is strict (no TF32)
// unless the settings say otherwise. A convolution takes the fastest of the algorithms that cuDNN finds by
// trying; what only cuDNN's graphs have (cudnn_graph.h), the fastest of up to eight plans, timed as the
// baseline will be.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "gpu/calls.h"
#include "gpu/harness.h"
#include "warpsmith/base/error.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

// cuDNN has the operator, and nothing that computes it in this math, on this GPU, at these shapes.
class NotCovered : public Error {
 public:
  explicit NotCovered(const std::string& message) : Error(message) {}
};

// Whether this was built with cuDNN's headers.
bool has_cudnn();

// The calls of `task.cudnn` at `dims` (set in the task). What was chosen and its version go to `flags`.
// Inputs hold good values. Throws NotCovered, and Error where cuDNN is not there or does not take these
// shapes.
std::unique_ptr<GpuCalls> make_cudnn_calls(GpuHarness& harness, const task::Task& task,
                                           const task::Dims& dims, bool strict, const GpuAddresses& inputs,
                                           std::map<std::string, std::string>& flags);

}  // namespace warpsmith::measure

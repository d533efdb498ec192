// Baseline `cudnn`: the one operator of cuDNN that a task says it is, called directly.
//
// The library is the one that torch has loaded. Outputs lie in memory of their own for each call, as a
// program's would; no descriptor is made and no algorithm chosen inside the clock. Math is strict (no TF32)
// unless the settings say otherwise; a convolution takes the fastest of the algorithms that cuDNN finds by
// trying.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "gpu/calls.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

// Whether this was built with cuDNN's headers.
bool has_cudnn();

// The calls of `task.cudnn` at `dims` (set in the task). What was chosen and its version go to `flags`.
// Throws Error where cuDNN is not there or does not have it at these shapes.
std::unique_ptr<GpuCalls> make_cudnn_calls(const device::Gpu& gpu, const task::Task& task,
                                           const task::Dims& dims, bool strict, const GpuAddresses& inputs,
                                           std::map<std::string, std::string>& flags);

}  // namespace warpsmith::measure

// The operators of cuDNN's legacy interface: one function each, on tensors of four dimensions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "warpsmith/device/gpu.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

struct CudnnOperator {
  // Enqueues it: inputs in the spec's order, then the output. Throws Error where cuDNN refuses.
  std::function<void(const std::vector<const void*>& inputs, void* output)> enqueue;
  std::shared_ptr<device::GpuMemory> workspace;  // to be kept as long; null where it needs none
};

// That of `task.cudnn` at `dims`. The algorithm that was chosen goes to `flags`. Throws Error where cuDNN is
// not there or does not have it at these shapes.
CudnnOperator make_cudnn_operator(const task::Task& task, const task::Dims& dims, bool strict,
                                  std::map<std::string, std::string>& flags);

}  // namespace warpsmith::measure

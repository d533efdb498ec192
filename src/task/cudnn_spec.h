// The key `cudnn` of a task file.
#pragma once

#include <optional>

#include "warpsmith/task/task.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::task {

// `task` has its inputs and outputs already. Mistakes go to `diagnostics`; nothing is returned where there
// are any.
std::optional<CudnnSpec> read_cudnn(const yaml::Node& node, const Task& task, Diagnostics& diagnostics);

}  // namespace warpsmith::task

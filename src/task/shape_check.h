// What a task's expressions come to at one of its shapes.
#pragma once

#include "warpsmith/task/task.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::task {

// Evaluates sizes, layout, values and costs at `dims`, and compares the memory with the task's limit. The
// mistakes go to the place of `node`.
void check_shape(const Task& task, const Dims& dims, const yaml::Node& node, Diagnostics& diagnostics);

}  // namespace warpsmith::task

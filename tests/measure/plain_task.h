// Tasks for tests, without a file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "warpsmith/task/task.h"

namespace warpsmith::measure {

inline task::TensorSpec tensor(const std::string& name, task::Dtype dtype,
                               const std::vector<std::string>& shape) {
  task::TensorSpec spec;
  spec.name = name;
  spec.dtype = dtype;
  for (const std::string& size : shape) spec.shape.push_back(task::Expression::parse(size));
  return spec;
}

// Of one dim N: timed at 64, checked at 5 and 1 as well.
inline task::Task make_task(const std::string& reference, std::vector<task::TensorSpec> inputs,
                            std::vector<task::TensorSpec> outputs) {
  task::Task task;
  task.id = "sample";
  task.folder = "/nowhere/sample";
  task.dims = {"N"};
  task.inputs = std::move(inputs);
  task.outputs = std::move(outputs);
  task.reference = reference;
  task.timing = {{{"N", 64}}};
  task.hidden = {{{"N", 5}}, {{"N", 1}}};
  return task;
}

}  // namespace warpsmith::measure

// The task of tests that only compile: `x` of N float32 elements in, `out` of as many out.
#pragma once

#include "warpsmith/task/task.h"

namespace warpsmith::toolchain {

inline task::Task copy_task() {
  task::Task task;
  task.id = "t";
  task.dims = {"N"};
  task::TensorSpec x;
  x.name = "x";
  x.shape = {task::Expression::parse("N")};
  task.inputs = {x};
  x.name = "out";
  task.outputs = {x};
  return task;
}

}  // namespace warpsmith::toolchain

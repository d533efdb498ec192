// check_task() (task_check.h) on the GPU of this process.
#pragma once

#include "harness.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/measure/task_check.h"

namespace warpsmith::measure {

class GpuTaskChecker {
 public:
  // Loads torch's CUDA part and compiles the harness. Throws Error where there is no GPU. Afterwards
  // configure_torch() must be called.
  explicit GpuTaskChecker(const Settings& settings);
  // Holds the GPU's lock meanwhile: somebody may be timing there.
  TaskFindings check(const task::Task& task);

 private:
  Settings settings_;
  device::Gpu gpu_;
  ValueSource source_;
  GpuHarness harness_;
};

}  // namespace warpsmith::measure

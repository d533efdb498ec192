// A timed call, looked at in full.
#pragma once

#include <cstdint>
#include <vector>

#include "harness.h"
#include "inputs.h"
#include "warpsmith/measure/check.h"
#include "warpsmith/measure/compare.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

// The first of these comparisons of outputs at `dims` that does not agree, as a verdict; ok where all do.
Ran wrong_in_a_timed_call(const std::vector<Comparison>& compared, const task::Task& task,
                          const task::Dims& dims);

class GpuCallCheck {
 public:
  // `reference` runs on the GPU; `bounds`: by output. All that is referred to must outlive it.
  GpuCallCheck(const GpuHarness& harness, const task::Task& task, const Reference& reference,
               const task::Dims& dims, std::vector<double> bounds);
  // Whether a call has left its inputs, which are the values of `seed`, as they were, and has given what the
  // reference gives for them in its own precision. Its operands are inputs, then outputs, which are copied at
  // once. Waits. Throws GpuError where the GPU is not done.
  Ran look(std::uint64_t seed, const GpuOperands& operands, int set);

 private:
  const task::Task& task_;
  task::Dims dims_;
  std::vector<double> bounds_;
  GpuFreshInputs fresh_;
  Reference::Calls right_;  // bound to it
  std::vector<device::GpuMemory> outputs_;
};

}  // namespace warpsmith::measure

// A `plan` candidate on the GPU: its checks, and its timed calls.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/measure/arm.h"
#include "warpsmith/task/launch_plan.h"

namespace warpsmith::measure {

// Operands of a candidate at one shape, bound to its program.
class GpuLayout {
 public:
  // `outcome` is a bad verdict where the plan does not fit; then nothing else may be called. `room`: fewer
  // sets, but two of them, where all with their temporaries would take more bytes.
  GpuLayout(GpuHarness& harness, const task::Task& task, const task::LaunchPlan& plan,
            device::GpuProgram& program, const task::Dims& dims, int sets,
            std::uint64_t room = std::numeric_limits<std::uint64_t>::max());
  const device::GpuOutcome& outcome() const { return outcome_; }
  const task::Dims& dims() const { return dims_; }
  int sets() const { return sets_; }
  GpuOperands& operands() { return *operands_; }
  const GpuOperands& operands() const { return *operands_; }
  std::size_t input_count() const { return input_count_; }
  std::uint64_t bytes(std::size_t operand) const { return operands_->specs()[operand].bytes; }
  device::GpuAddress address(int set, std::size_t operand) const { return operands_->address(set, operand); }
  // Enqueues: outputs and temporaries of sets first…first+count-1 become 0xFF.
  void poison(int first, int count);
  // Appends where a set lies, for GpuKernels::touch().
  void add_memory(int set, std::vector<GpuRegion>& memory) const;

 private:
  GpuHarness& harness_;
  task::Dims dims_;
  int sets_;
  std::size_t input_count_ = 0;
  device::GpuOutcome outcome_;
  std::optional<GpuOperands> operands_;  // inputs, then outputs, then temporaries
};

class GpuCandidate : public Program {
 public:
  // All that is referred to must outlive it. `timeout_s`: of one call.
  GpuCandidate(GpuHarness& harness, const task::Task& task, const task::LaunchPlan& plan,
               std::span<const std::byte> cubin, device::GpuNames names, double timeout_s);
  Ran prepare(const task::Dims& dims, int sets) override;
  const task::Dims& dims() const override { return layout_->dims(); }
  std::vector<std::span<std::byte>> inputs(int set) override;
  std::vector<std::span<const std::byte>> outputs(int set) override;
  void poison(int sets) override;
  Ran run(int sets) override;
  bool alive() const override { return !lost_; }

  GpuHarness& harness() { return harness_; }
  device::GpuProgram& program() { return program_; }
  const task::Task& task() const { return task_; }
  const task::LaunchPlan& plan() const { return plan_; }
  double timeout_s() const { return timeout_s_; }
  // A bad outcome as what the candidate ran into; notes that the context is gone.
  Ran ran(const device::GpuOutcome& outcome);

 private:
  Ran run_sets(int sets);

  GpuHarness& harness_;
  const task::Task& task_;
  const task::LaunchPlan& plan_;
  device::GpuProgram program_;
  double timeout_s_;
  bool lost_ = false;
  std::optional<GpuLayout> layout_;
};

}  // namespace warpsmith::measure

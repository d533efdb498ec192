// Calls of a baseline on the GPU, bound to operands: what GpuBaselineArm times.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "warpsmith/measure/reference.h"

namespace warpsmith::measure {

// Addresses on the device of one call's inputs, by set.
using GpuInputs = std::vector<std::vector<std::span<std::byte>>>;

class GpuCalls {
 public:
  virtual ~GpuCalls() = default;
  // Enqueues calls first…first+count-1 on the default stream.
  virtual void run(int first, int count) = 0;
  // Where the outputs of these calls lie, as far as that is known before they run.
  virtual std::vector<std::span<const std::byte>> output_memory(int first, int count) const = 0;
  // Before new values come: memory of outputs may go back to where the next run takes it from.
  virtual void drop_outputs() {}
  // Outputs of a call of the last run. Waits.
  virtual std::vector<OutputValues> outputs(int call) const = 0;
};

// Makes the calls of a baseline for operands that hold good values already. Throws Error where it cannot.
using MakeGpuCalls = std::function<std::unique_ptr<GpuCalls>(const GpuInputs& inputs)>;

// Eager: operator by operator. The outputs of a run come from torch's allocator, and most likely lie where
// the last ones did.
class EagerCalls : public GpuCalls {
 public:
  EagerCalls(const Reference& reference, const task::Dims& dims, const GpuInputs& inputs)
      : calls_(reference.bind(dims, inputs)) {}
  void run(int first, int count) override {
    first_ = first;
    calls_.run(first, count);
  }
  std::vector<std::span<const std::byte>> output_memory(int, int) const override {
    return calls_.output_memory();
  }
  void drop_outputs() override { calls_.drop_outputs(); }
  std::vector<OutputValues> outputs(int call) const override { return calls_.outputs(call - first_); }

 private:
  Reference::Calls calls_;
  int first_ = 0;
};

}  // namespace warpsmith::measure

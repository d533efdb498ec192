// The values that calls on a GPU get.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

std::vector<GpuOperandSpec> input_specs(const task::Task& task, const task::Dims& dims);
// Bytes on the device as Reference::bind() takes them.
std::span<std::byte> device_span(device::GpuAddress address, std::uint64_t bytes);
// And back.
GpuRegion region_of(std::span<const std::byte> span);
// Operands first…first+count-1 of a set.
std::vector<std::span<std::byte>> operand_spans(const GpuOperands& operands, int set, std::size_t first,
                                                std::size_t count);
// All operands of sets first…first+count-1 as Reference::bind() takes them.
std::vector<std::vector<std::span<std::byte>>> spans_of(const GpuOperands& operands, int first, int count);

// What the inputs of calls are filled with, all calls at once.
class GpuInputs {
 public:
  // Inputs of the reference's task. `reference` runs on the GPU and must outlive it.
  GpuInputs(const Reference& reference, const task::Dims& dims);
  // The inputs of one call, in the first operands of a set.
  void add(std::uint64_t seed, const GpuOperands& operands, int set);
  // The same at these addresses, as fill_inputs() (oracle.h) has them.
  void add(std::uint64_t seed, std::uint64_t use, int distribution,
           const std::vector<std::span<std::byte>>& inputs);
  // Of what was added, does what a stream that is held cannot wait for, and waits: fills what the host draws,
  // and runs the task's `prepare` in memory of its own, from where fill() copies. What torch has used for it
  // goes back to the driver.
  void fill_ahead(const GpuHarness& harness);
  // Enqueues what was added; with a `prepare` that was not run ahead it waits for what was enqueued before,
  // and what torch has used stays with torch.
  void fill(const GpuHarness& harness);
  // Gives that back, so that nothing can be read there, where the task has a `prepare`. Waits.
  void release_memory() const;

 private:
  struct Copy {
    GpuRegion to;
    device::GpuAddress from = 0;
  };
  using Call = std::vector<std::span<std::byte>>;  // its inputs
  bool is_prepared(std::size_t input) const;

  const Reference& reference_;
  task::Dims dims_;
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<GpuFill> fills_;
  std::vector<Call> calls_;   // that `prepare` has still to run on
  std::vector<Copy> copies_;  // of what was prepared ahead
  device::GpuMemory ahead_;
};

// The inputs of one call at one shape, drawn anew where no candidate has been. The right answer is the one
// for them. Whoever has written to inputs of its own is found by them.
class GpuFreshInputs {
 public:
  // All that is referred to must outlive it.
  GpuFreshInputs(const GpuHarness& harness, const Reference& reference, const task::Dims& dims);
  // Enqueues the values, as GpuInputs::add() has them.
  void draw(std::uint64_t seed, std::uint64_t use = 0, int distribution = -1);
  // GpuInputs::release_memory().
  void release_memory() const { values_.release_memory(); }
  // One set, as Reference::bind() takes it.
  const std::vector<std::vector<std::span<std::byte>>>& sets() const { return sets_; }
  // The number of the first input among these sets that is not as it was drawn; or nothing. Waits.
  std::optional<std::size_t> changed(const std::vector<std::vector<std::span<std::byte>>>& sets);

 private:
  const GpuHarness& harness_;
  GpuInputs values_;
  GpuOperands operands_;  // one set
  std::vector<std::vector<std::span<std::byte>>> sets_;
  device::PinnedMemory flag_;
};

}  // namespace warpsmith::measure

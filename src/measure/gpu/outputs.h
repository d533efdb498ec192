// Whether outputs of calls, and what a candidate has besides, have been written to: a few places of each are
// looked at, on the GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

class GpuOutputs {
 public:
  // Each set of `operands` has the task's inputs, then its outputs, then temporaries. Enqueues: the caller
  // waits.
  GpuOutputs(const GpuHarness& harness, const task::Task& task, const GpuOperands& operands);
  // Enqueues a look at the outputs of sets first…first+count-1, at places as `key` says: for one that is
  // poisoned there, or, where `written`, for one that is not, or for such a temporary.
  void look(int first, int count, bool written, std::uint64_t key);
  // After a wait: which of these sets has one, counted from the first; nothing: none.
  std::optional<int> found() const;
  // Whether the list on the device is as it was put there. Waits.
  bool table_is_whole() const { return regions_.is_whole(harness_.gpu()); }

 private:
  int* flags() const { return flags_.as<int>(); }

  const GpuHarness& harness_;
  std::uint64_t sets_;
  std::size_t outputs_;
  std::vector<int> sizes_;  // of an element, by output; 1 of temporaries, behind them
  RegionTable regions_;     // [output or temporary][set]
  device::PinnedMemory flags_;
};

}  // namespace warpsmith::measure

// Calls of a baseline on the GPU, bound to operands: what GpuBaselineArm times.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "warpsmith/measure/compare.h"
#include "warpsmith/measure/reference.h"

namespace warpsmith::measure {

// Addresses on the device of one call's inputs, by set.
using GpuAddresses = std::vector<std::vector<std::span<std::byte>>>;

// Calls are numbered over all sets of operands: those of a place follow one another, and make a row.
class GpuCalls {
 public:
  virtual ~GpuCalls() = default;
  // Enqueues calls first…first+count-1, all of one row, on the default stream.
  virtual void run(int first, int count) = 0;
  // Where the outputs of these calls lie, as far as that is known before they run.
  virtual std::vector<std::span<const std::byte>> output_memory(int first, int count) const = 0;
  // Before new values come for the row that `first` begins: memory of its outputs may go back to where its
  // next run takes it from.
  virtual void drop_outputs(int first) { (void)first; }
  // How the outputs of a call of its row's last run differ from what `right`'s last run gave with its first
  // call: by output, compared on the device. Waits.
  virtual std::vector<Comparison> compare(int call, const Reference::Calls& right,
                                          const std::vector<double>& bounds) const = 0;
};

// Makes the calls of a baseline for operands that hold good values already. Throws Error where it cannot.
using MakeGpuCalls = std::function<std::unique_ptr<GpuCalls>(const GpuAddresses& inputs)>;

// Eager: operator by operator. The outputs of a run come from torch's allocator, and most likely lie where
// the row's last ones did; those of other rows stay where they are.
class EagerCalls : public GpuCalls {
 public:
  // `row`: sets in a row.
  EagerCalls(const Reference& reference, const task::Dims& dims, const GpuAddresses& inputs, int row);
  void run(int first, int count) override;
  std::vector<std::span<const std::byte>> output_memory(int first, int count) const override;
  void drop_outputs(int first) override;
  std::vector<Comparison> compare(int call, const Reference::Calls& right,
                                  const std::vector<double>& bounds) const override;

 private:
  struct Row {
    Reference::Calls calls;
    int first = 0;  // of the last run
    std::vector<std::span<const std::byte>> last_outputs;
  };
  Row& row_of(int call) { return rows_[static_cast<std::size_t>(call / row_)]; }
  const Row& row_of(int call) const { return rows_[static_cast<std::size_t>(call / row_)]; }

  int row_;
  std::vector<Row> rows_;
};

}  // namespace warpsmith::measure

// The baseline by the host's clock, as candidates with host code are timed against it: what those of one task
// share beside their GpuBench.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "arms.h"
#include "engine/alone.h"
#include "gpu/bench.h"

namespace warpsmith::measure {

class HostRows {
 public:
  // Makes the baseline with room for rows of so many calls.
  using Make = std::function<std::unique_ptr<HostBaseline>(int most_calls)>;
  HostRows(const GpuHarness& harness, const GpuBench& task, std::uint64_t seed, const Make& make);
  HostBaseline& baseline() { return *baseline_; }
  int calls() const { return calls_; }            // of the baseline in a row
  int most_calls() const { return most_calls_; }  // that there is room for
  Alone& alone() { return alone_; }
  // Calls of either side that make a row, 1 to `most`, where one takes `call_ns`.
  static int calls_a_row(double call_ns, int most);

 private:
  int calls_ = 1, most_calls_ = 1;
  std::unique_ptr<HostBaseline> baseline_;
  Alone alone_;
};

}  // namespace warpsmith::measure

// The baseline by the host's clock, as candidates with host code are timed against it: what those of one task
// share beside their GpuBench.
#pragma once

#include <cstdint>
#include <optional>

#include "arms.h"
#include "engine/alone.h"
#include "gpu/bench.h"

namespace warpsmith::measure {

class HostRows {
 public:
  // `task` must outlive it.
  HostRows(GpuHarness& harness, GpuBench& task, std::uint64_t seed);
  HostClockBaseline& baseline() { return *baseline_; }
  int calls() const { return calls_; }            // of the baseline in a row
  int most_calls() const { return most_calls_; }  // that there is room for
  Alone& alone() { return alone_; }
  // Calls that make a row, up to `most`, where one takes `call_ns`.
  static int calls_a_row(double call_ns, int most);

 private:
  int calls_ = 1, most_calls_ = 1;
  std::optional<HostClockBaseline> baseline_;
  Alone alone_;
};

}  // namespace warpsmith::measure

// How many calls of a baseline make one timed row on a GPU.
#pragma once

#include <algorithm>
#include <cmath>

namespace warpsmith::measure {

// A row of calls that takes the host longer than this to enqueue may not fit into the GPU's queue of about a
// thousand launches.
inline constexpr double kLongestRowNs = 2e6;
// A row should take this long: where it begins and ends, the clock is uncertain by about 1 us. How it was
// chosen: src/measure/README.md.
inline constexpr double kRowNs = 120e3;

// `call_ns`: what a call of eager takes the GPU, `enqueue_ns`: what enqueueing one takes the host.
inline int gpu_calls_a_row(double call_ns, double enqueue_ns) {
  constexpr double kMostCalls = 64;
  constexpr double kFasterThanBaseline = 3;  // a candidate; one that is faster still has shorter rows
  const double wanted = std::ceil(kFasterThanBaseline * kRowNs / std::max(1.0, call_ns));
  const double most = std::min(kMostCalls, kLongestRowNs / std::max(1.0, enqueue_ns));
  return static_cast<int>(std::max(1.0, std::min(wanted, most)));
}

}  // namespace warpsmith::measure

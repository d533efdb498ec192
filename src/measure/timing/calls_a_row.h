// How many calls make one timed row on a GPU: each side of a pair has rows of about the same length, not of
// as many calls. A row takes 1 to 6 us more than its calls do by and by, at its ends and for its first call,
// whose code has been driven out of L2 like its operands: of rows of one length that is about the same share
// on both sides. (With as many calls on both sides a program twice as fast as eager came out up to 4 % too
// slow, on an H200.)
#pragma once

#include <algorithm>
#include <cmath>

namespace warpsmith::measure {

// A row of calls that takes the host longer than this to enqueue may not fit into the GPU's queue of about a
// thousand launches.
inline constexpr double kLongestRowNs = 2e6;
inline constexpr int kMostCallsARow = 64;
// How it was chosen: src/measure/README.md.
inline constexpr double kRowNs = 160e3;

// `call_ns`: what a call takes the GPU, `enqueue_ns`: what enqueueing one takes the host.
inline int gpu_calls_a_row(double call_ns, double enqueue_ns, double row_ns = kRowNs) {
  const double wanted = std::ceil(row_ns / std::max(1.0, call_ns));
  const double most = std::min<double>(kMostCallsARow, kLongestRowNs / std::max(1.0, enqueue_ns));
  return static_cast<int>(std::max(1.0, std::min(wanted, most)));
}

}  // namespace warpsmith::measure

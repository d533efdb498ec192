// How many calls make one timed row on a GPU. Both sides of a pair have rows of about one length, not of as
// many calls: a row takes 1 to 6 us more than its calls do by and by, at its ends and for its first call,
// whose code has been driven out of L2 like its operands, and of rows of one length that is about the same
// share on both sides. (With as many calls on both sides a program twice as fast as eager came out up to 4 %
// too slow, on an H200.) They are of other lengths where a call takes longer than a row should, where a row
// has as many calls as it may, and by half a call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "warpsmith/measure/arm.h"
#include "warpsmith/measure/pairs.h"

namespace warpsmith::measure {

// A row of calls that takes the host longer than this to enqueue may not fit into the GPU's queue of about a
// thousand launches.
inline constexpr double kLongestRowNs = 2e6;
inline constexpr int kMostCallsARow = 64;
// How it was chosen: src/measure/README.md.
inline constexpr double kRowNs = 160e3;

// The number of calls, at least 1, that take nearest to `row_ns`. `call_ns`: what a call takes the GPU,
// `enqueue_ns`: what enqueueing one takes the host.
int gpu_calls_a_row(double call_ns, double enqueue_ns, double row_ns = kRowNs, int most = kMostCallsARow);

// Calls of two rows that take about as long as each other, where one call takes so long: each side's from
// `least` to `most`. No more than the least of `own` where more do not make them much more alike.
struct CallsRange {
  int least = 1, most = 1;
};
RowCalls equal_rows(double own_ns, CallsRange own, double others_ns, CallsRange others);
// Calls to try next, where a call in rows of `now` calls took so long; nothing where these rows are alike
// already. A row's beginning takes long, so of rows with different numbers of calls the shorter one's call
// looks longer, and one try is not enough.
std::optional<RowCalls> other_calls(RowCalls now, double own_ns, CallsRange own, double others_ns,
                                    CallsRange others);

// What a call of an arm takes by rows of its own, on new values and looked at like timed ones: whoever is
// fast in these alone would choose the length of its rows.
struct RowEstimate {
  double call_ns = 1, enqueue_ns = 0;
  int calls = 1;  // that make a row
  Ran failed;     // ok, or what a row or a look at it came to
};
// `enqueue_ns`: what enqueueing the last row took the host. Of several rows the median time counts, and the
// least of the host, which can only be held up.
RowEstimate estimate_row(Arm& arm, const std::function<double()>& enqueue_ns, double row_ns, int most,
                         std::uint64_t key);

}  // namespace warpsmith::measure

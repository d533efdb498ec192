// Quotients of times with their intervals. Pure functions of numbers.
//
// A candidate is timed in pairs with `eager`, and so is each further baseline, once for a task. A speedup
// over such a baseline is the quotient of the two scores:
//     (eager / candidate) / (eager / baseline) = baseline / candidate.
// The two were measured independently, so that half widths (of the logarithms) add as squares. The error of
// the second one is common to all candidates of a task: it can move them all, never change their order.
#pragma once

namespace warpsmith::stats {

// A quotient of two times, and its 95 % interval: symmetrical in the logarithm. All positive.
struct Ratio {
  double value = 1, low = 1, high = 1;
};

// a / b, of independent measurements.
Ratio divided(const Ratio& a, const Ratio& b);
// What was divided by `b` to give `quotient`. Where rounding leaves less than nothing for its interval, that
// has no width.
Ratio undivided(const Ratio& quotient, const Ratio& b);

}  // namespace warpsmith::stats

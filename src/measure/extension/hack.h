// What clocks and threads say of a candidate with host code, and what it pays for work that the clock does
// not hold.
#pragma once

#include <string>

namespace warpsmith::measure {

// Whether what the clocks say of timed calls shows that they were cheated, and how: the kind of a `hack`, or
// empty.
struct ClockFacts {
  double ours_ns = 0, events_ns = 0, late_ns = 0;  // as ExtensionArm::clocks()
  int threads_before = 0, threads_after = 0;       // 0: not known
  bool libraries = false;                          // cuBLAS or cuDNN, which may have threads of their own
  bool moved = false;                              // the child has chosen processors of its own
  double armed_ns = 0, values_ns = 0;              // as ExtensionArm::clocks()
  double values_alone_ns = 0;                      // HostClockBaseline::values_ns()
  double outside_ns = 0;                           // as ExtensionOverhead: what was taken off `ours_ns`
};
std::string hack_of(const ClockFacts& facts, std::string* detail);
// Kinds of those that are looked at twice.
inline constexpr const char* kBeforeClock = "before_clock";
inline constexpr const char* kLateWork = "late_work";
// What is wrong where a row's values took `ns` while the candidate stood still, and `gone_ns` when its
// process was gone: it had left work on the GPU, which slows down whatever is looked at or timed meanwhile.
// Empty: nothing.
std::string busy_while_stopped(double ns, double gone_ns);
// What a row by the clock, of `row_ns`, is charged for the `ns` that the candidate took beside it, before the
// clock or behind: what is beyond chance. So what is done there in some of the rows alone gains nothing,
// either.
double charge_beside_clock(double ns, double row_ns);
// Of what a row's values took, what is more than they take without the candidate, and than its scatter.
double values_beyond(double ns, double alone_ns);

}  // namespace warpsmith::measure

#include "hack.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpsmith::measure {

namespace {

constexpr double kClocksApart = 1.05;
constexpr double kClockGrainNs = 2000;  // of an interval; both are medians
// Beside the clock a candidate has nothing to do: what it takes there by chance is less than these, or less
// than that share of the row.
constexpr double kArmedShare = 0.05, kArmedLeastNs = 100e3;
constexpr double kLateShare = 0.1, kLateLeastNs = 200e3;  // another process's turn on the GPU comes that late
// A flush of L2 beside a child that has work on the GPU waits for its turn, some milliseconds.
constexpr double kSlowFlush = 3, kSlowFlushLeastNs = 300e3;
constexpr int kLibraryThreads = 8;

double beyond_chance(double ns, double least_ns, double share, double row_ns) {
  return ns > std::max(least_ns, share * row_ns) ? ns : 0;
}

}  // namespace

double charge_before_clock(double armed_ns, double row_ns) {
  return beyond_chance(armed_ns, kArmedLeastNs, kArmedShare, row_ns);
}

double charge_behind_clock(double late_ns, double row_ns) {
  return beyond_chance(late_ns, kLateLeastNs, kLateShare, row_ns);
}

std::string hack_of(const ClockFacts& f, std::string* detail) {
  if (f.threads_before > 0 && f.threads_after > f.threads_before + (f.libraries ? kLibraryThreads : 0)) {
    *detail = fmt::format("{} threads are left, where {} were before it was loaded", f.threads_after,
                          f.threads_before);
    return "threads";
  }
  if (f.moved) {
    *detail = "it has moved itself to other processors than those that it was given";
    return "processors";
  }
  const double longer = std::max(f.ours_ns, f.events_ns), shorter = std::min(f.ours_ns, f.events_ns);
  if (longer - shorter > kClockGrainNs && longer > kClocksApart * shorter) {
    *detail = fmt::format("{:.0f} ns by its events on the default stream, {:.0f} ns by the clock outside",
                          f.events_ns, f.ours_ns);
    return "clocks";
  }
  if (charge_before_clock(f.armed_ns, f.ours_ns) > 0) {
    *detail = fmt::format("it was busy for {:.0f} ns before the clock of {:.0f} ns of calls", f.armed_ns,
                          f.ours_ns);
    return "before_clock";
  }
  if (f.flush_ns > kSlowFlush * f.flush_alone_ns + kSlowFlushLeastNs) {
    *detail = fmt::format(
        "the GPU was busy before the clock: flushing L2 took {:.0f} ns, and {:.0f} ns "
        "beside a process without a candidate",
        f.flush_ns, f.flush_alone_ns);
    return "before_clock";
  }
  if (charge_behind_clock(f.late_ns, f.ours_ns) > 0) {
    *detail = fmt::format("the GPU was busy for {:.0f} ns after the answer to {:.0f} ns of calls", f.late_ns,
                          f.ours_ns);
    return "late_work";
  }
  return "";
}

}  // namespace warpsmith::measure

#include "hack.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpsmith::measure {

namespace {

constexpr double kClocksApart = 1.05;
constexpr double kClockGrainNs = 2000;  // of an interval; both are medians
// Beside the clock a candidate has nothing to do. What honest ones take there by chance, beyond what a child
// without a candidate takes: by the median of a program's rows up to 25 us in rows of 1 and 2 ms, 55 us in
// rows of 20 ms (bench/extension_bench, on an H200).
constexpr double kChanceShare = 0.01, kChanceNs = 30e3;
constexpr double kHackShare = 0.03, kHackNs = 100e3;
constexpr double kValuesScatter = 0.03;
constexpr double kQuietScatter = 1.1, kQuietGrainNs = 30e3;
constexpr int kLibraryThreads = 8;

bool beyond_doubt(double ns, double row_ns) { return ns > std::max(kHackNs, kHackShare * row_ns); }

}  // namespace

double charge_beside_clock(double ns, double row_ns) {
  return std::max(0., ns - std::max(kChanceNs, kChanceShare * row_ns));
}

double values_beyond(double ns, double alone_ns) { return ns - (1 + kValuesScatter) * alone_ns; }

std::string busy_while_stopped(double ns, double gone_ns) {
  if (ns <= kQuietScatter * gone_ns + kQuietGrainNs) return "";
  return fmt::format(
      "the GPU was busy while nobody called it: the values of a row took {:.0f} ns then, and {:.0f} ns when "
      "it was gone",
      ns, gone_ns);
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
  // What was taken off may have been another time's, where other work on the GPU comes between.
  if (longer - shorter > kClockGrainNs + f.outside_ns && longer > kClocksApart * shorter) {
    *detail = fmt::format("{:.0f} ns by its events on the default stream, {:.0f} ns by the clock outside",
                          f.events_ns, f.ours_ns);
    return "clocks";
  }
  if (beyond_doubt(f.armed_ns, f.ours_ns)) {
    *detail = fmt::format("it was busy for {:.0f} ns before the clock of {:.0f} ns of calls", f.armed_ns,
                          f.ours_ns);
    return kBeforeClock;
  }
  if (f.values_alone_ns > 0 && beyond_doubt(values_beyond(f.values_ns, f.values_alone_ns), f.ours_ns)) {
    *detail = fmt::format(
        "the GPU was busy before the clock: writing values and flushing L2 took {:.0f} ns, and {:.0f} ns "
        "without the candidate",
        f.values_ns, f.values_alone_ns);
    return kBeforeClock;
  }
  if (beyond_doubt(f.late_ns, f.ours_ns)) {
    *detail = fmt::format("the GPU was busy for {:.0f} ns after the answer to {:.0f} ns of calls", f.late_ns,
                          f.ours_ns);
    return kLateWork;
  }
  return "";
}

}  // namespace warpsmith::measure

#include <fmt/format.h>

#include <algorithm>

#include "measurer.h"

namespace warpsmith::measure {

namespace {

constexpr double kClocksApart = 1.05;
constexpr double kClockGrainNs = 2000;  // of an interval; both are medians
constexpr double kLateShare = 0.25;     // of the interval
constexpr double kLateLeastNs = 200e3;  // another process's turn on the GPU comes that late of itself
constexpr int kLibraryThreads = 8;

}  // namespace

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
  if (f.late_ns > std::max(kLateLeastNs, kLateShare * f.ours_ns)) {
    *detail = fmt::format("the GPU was busy for {:.0f} ns after the answer to {:.0f} ns of calls", f.late_ns,
                          f.ours_ns);
    return "late_work";
  }
  return "";
}

}  // namespace warpsmith::measure

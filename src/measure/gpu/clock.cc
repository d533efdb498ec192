#include "clock.h"

#include <chrono>

namespace warpsmith::measure {

GpuTimes GpuClock::time_calls(std::span<const GpuRegion> memory,
                              const std::function<device::GpuOutcome()>& calls, double timeout_s) {
  kernels_.flush_l2();
  kernels_.touch(memory);
  return time_queued(calls, timeout_s);
}

GpuTimes GpuClock::time_queued(const std::function<device::GpuOutcome()>& calls, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  GpuTimes times;
  kernels_.hold();
  try {
    start_.record();
    const Clock::time_point begin = Clock::now();
    times.outcome = calls();
    times.enqueue_ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    stop_.record();
    times.late = times.outcome.ok() && start_.passed();
  } catch (...) {
    kernels_.release();
    throw;
  }
  kernels_.release();
  if (times.outcome.ok()) read(times, timeout_s);
  return times;
}

double GpuClock::time_at_once(const std::function<void()>& work, double timeout_s) {
  kernels_.hold();
  try {
    start_.record();
    work();
    stop_.record();
  } catch (...) {
    kernels_.release();
    throw;
  }
  kernels_.release();
  gpu_.settle(timeout_s, timeout_s);
  return device::GpuEvent::ns_between(start_, stop_);
}

void GpuClock::read(GpuTimes& times, double timeout_s) {
  times.outcome = gpu_.wait(timeout_s);
  if (!times.outcome.ok()) return;
  times.queued_ns = device::GpuEvent::ns_between(start_, stop_);
  timed_ns_ += times.queued_ns;
}

GpuTimes GpuClock::time_idle(const std::function<device::GpuOutcome()>& call, double timeout_s) {
  kernels_.flush_l2();
  GpuTimes times;
  times.outcome = gpu_.wait(timeout_s);
  if (!times.outcome.ok()) return times;
  const auto begin = std::chrono::steady_clock::now();
  start_.record();
  times.outcome = call();
  stop_.record();
  if (!times.outcome.ok()) return times;
  read(times, timeout_s);
  times.host_ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  return times;
}

}  // namespace warpsmith::measure

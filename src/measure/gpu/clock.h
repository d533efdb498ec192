// The GPU's clock: two events, and a stream that is held back until all between them is enqueued.
#pragma once

#include <functional>
#include <span>

#include "kernels.h"
#include "warpsmith/device/gpu.h"

namespace warpsmith::measure {

struct GpuTimes {
  device::GpuOutcome outcome;
  double queued_ns = 0;   // all calls together
  bool late = false;      // the stream was not held back for as long as enqueueing took
  double enqueue_ns = 0;  // what it took the host to enqueue the calls
  double host_ns = 0;     // of time_idle(): the same by the host's clock, a wake-up included
};

class GpuClock {
 public:
  GpuClock(const device::Gpu& gpu, const GpuKernels& kernels) : gpu_(gpu), kernels_(kernels) {}

  // Times what `calls` enqueues, between two events, behind a flush of L2, on a stream that is held back
  // until all is enqueued, for at most 50 ms. The calls follow one another without a flush between them: each
  // has operands of its own, which the one flush has driven out. (With a flush and two events for each call,
  // a call of 5 us took 4 to 6 us by its place in the row: the GPU's front end fetches what the host enqueues
  // meanwhile.) `memory`: what the calls will touch. Waits at most `timeout_s`.
  GpuTimes time_calls(std::span<const GpuRegion> memory, const std::function<device::GpuOutcome()>& calls,
                      double timeout_s);
  // The same with L2 and TLB as they are.
  GpuTimes time_queued(const std::function<device::GpuOutcome()>& calls, double timeout_s);
  // One call from an idle GPU, launch latency included.
  GpuTimes time_idle(const std::function<device::GpuOutcome()>& call, double timeout_s);
  // What the GPU takes, by the same clock, for `work`, which only enqueues, and not as calls: nanoseconds.
  // Throws GpuError. Waits without sleeping.
  double time_at_once(const std::function<void()>& work, double timeout_s);
  // Nanoseconds of all calls so far that a clock saw: between its events, or by add_timed().
  double timed_ns() const { return timed_ns_; }
  void add_timed(double ns) { timed_ns_ += ns; }

 private:
  // Reads the clock, once all is done that was enqueued between its events.
  void read(GpuTimes& times, double timeout_s);

  const device::Gpu& gpu_;
  const GpuKernels& kernels_;
  device::GpuEvent start_, stop_;
  double timed_ns_ = 0;
};

}  // namespace warpsmith::measure

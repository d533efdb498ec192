// One processor for both sides of a pair that is timed by the host's clock.
//
// Where launches are most of the time, a call is as fast as the processor that it runs on; and of a host that
// is shared with others one processor is a fifth faster than the next, and other ones a second later. On one
// and the same processor, in turns, whatever happens to it happens to both sides.
#pragma once

#include <sched.h>

#include <optional>

#include "gpu/harness.h"
#include "warpsmith/base/files.h"

namespace warpsmith::measure {

// Nanoseconds that a launch takes the host, on the processor that this thread is on: the median of `times`
// rows.
double enqueue_ns(const GpuHarness& harness, int times);

// This thread stays on one processor until the end of the block, and so does what it starts.
class StayOn {
 public:
  explicit StayOn(int cpu);
  ~StayOn();
  StayOn(const StayOn&) = delete;
  StayOn& operator=(const StayOn&) = delete;
  bool there() const { return there_; }

 private:
  cpu_set_t before_;
  bool there_ = false;
};

// A processor that no other process that times on this host has taken, for as long as this lives.
class Processor {
 public:
  // That of the fastest launches, of at most 16 of those that this process may use. Nothing where all are
  // taken.
  static std::optional<Processor> claim(const GpuHarness& harness);
  int number() const { return number_; }

 private:
  Processor(int number, FileLock lock) : number_(number), lock_(std::move(lock)) {}
  int number_;
  FileLock lock_;
};

}  // namespace warpsmith::measure

// Processes of others that work on a GPU while something is timed there.
#pragma once

#include <cstdint>
#include <string>

#include "warpsmith/process/gpu_watch.h"

namespace warpsmith::process {

// Ours are this process, those below it, and Warpsmith's other programs with those below them: these work on
// a GPU while they hold its lock. NVML says what each process did in stretches of 1/6 s to 1 s, and a stretch
// counts from 0.2 s on, since who was there before may have ended meanwhile. Work of less than a stretch may
// go unseen.
class GpuNeighbours {
 public:
  // `watch` must outlive it. This process must have a context on the GPU, if it is to be known there.
  explicit GpuNeighbours(const GpuWatch& watch);
  // Whether NVML says what processes do, and counts them as this process does: in a container, in a virtual
  // machine and on some GPUs it does not.
  bool can_tell() const { return can_tell_; }
  // What is seen from now on counts.
  void begin();
  // "process 4711 (`python3`) worked on this GPU, too": one that took 5 % of its time or more since begin().
  // Empty where there was none, or none can be told.
  std::string seen() const;

 private:
  const GpuWatch& watch_;
  bool can_tell_ = false;
  std::uint64_t begin_us_ = 0;  // since 1970
};

}  // namespace warpsmith::process

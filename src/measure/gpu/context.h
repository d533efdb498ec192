// What a launch costs the GPU hangs on the context. On an H200 an empty kernel behind another takes 1.28 to
// 1.44 us, to a thousandth the same in all of a context's launches, and which it will be is chance. Eager's
// calls are 2 to 4 % longer in one context than in another, and a speedup of many launches over few is as
// much off. So a process that measures opens contexts until it has one in which launches cost about the
// least.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "warpsmith/measure/measurer.h"

namespace warpsmith::measure {

struct LaunchCost {
  double ns = 0;     // of an empty kernel behind another, in this context; 0: not looked at
  double quick = 0;  // at most this is wanted on this GPU
  int contexts = 0;  // opened until this one, with it
};

// "1289 (1304 or less is quick)", nanoseconds
std::string to_string(const LaunchCost& cost);

// Of costs that were seen on a GPU: half a per cent over the least, short of a twentieth of them. `now`: of a
// context of this process; what is over a quarter more or less is of other times (under a tool that slows
// launches down, at other clocks), and does not count. `known`: whether enough were seen to say.
double quick_cost(std::vector<double> seen, double now, bool* known);

// For the start of a process: a context that is open already is kept. `cubin`: harness_cubin(). What is seen
// is kept beside gpu_lock_path(), for this user's processes on this machine. The first takes some 10 s, later
// ones 2 s (on an H200; where all contexts are alike, 2 s and a moment), and no one more than 20 s. Throws
// Error as device::Gpu() does, and where this GPU is none that the settings ask for.
LaunchCost open_quick_context(const Settings& settings, std::span<const std::byte> cubin);

}  // namespace warpsmith::measure

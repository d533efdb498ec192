// What tells one chip from another, measured in some 50 ms (records/ceilings.h).
#pragma once

#include <functional>
#include <vector>

#include "gpu/harness.h"
#include "warpsmith/records/ceilings.h"

namespace warpsmith::measure {

// Nanoseconds of what is enqueued, of each repeat.
using TimeEnqueued = std::function<std::vector<double>(const std::function<void()>& enqueue)>;

// A part that fails is left out with a warning in the log; throws GpuError where the context is lost.
Fingerprint fingerprint_of(GpuHarness& harness, const TimeEnqueued& times);

// The size up to which rates, from the fastest size on, are nearer, as a factor, to the fastest than to that
// of the last; 0 where these two do not differ by a quarter: then nothing can be told.
double edge_of(const std::vector<std::pair<double, double>>& rate_of_size);

}  // namespace warpsmith::measure

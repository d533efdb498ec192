// Intervals of shares. Pure functions.
#pragma once

#include <cstdint>

namespace warpsmith::stats {

struct Interval {
  double low = 0, high = 0;
};

// 95 % interval of a share, `count` of `of` independent draws (Wilson 1927): within [0, 1], and not without
// width where all or none count. `of` is positive and `count` within [0, of], else std::invalid_argument.
Interval wilson_interval(std::int64_t count, std::int64_t of);

}  // namespace warpsmith::stats

#include "warpsmith/stats/interval.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace warpsmith::stats {

Interval wilson_interval(std::int64_t count, std::int64_t of) {
  if (of < 1 || count < 0 || count > of) throw std::invalid_argument("interval of a share that is none");
  constexpr double kNormal = 1.959964;  // its 97.5 % quantile
  const auto n = static_cast<double>(of);
  const double share = static_cast<double>(count) / n, z2 = kNormal * kNormal;
  const double centre = (share + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kNormal * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n);
  return {std::max(0., centre - half), std::min(1., centre + half)};
}

}  // namespace warpsmith::stats

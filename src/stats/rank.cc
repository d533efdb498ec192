#include "warpsmith/stats/rank.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace warpsmith::stats {

namespace {

constexpr std::size_t kFewestPairs = 3;  // two always have one order or the other

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> ranks;
  for (const double v : values) {
    if (!std::isfinite(v)) throw std::invalid_argument("rank correlation: a number is not finite");
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), v);
    ranks.push_back(static_cast<double>((first - sorted.begin()) + (last - sorted.begin()) - 1) / 2);
  }
  return ranks;
}

}  // namespace

std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) throw std::invalid_argument("rank correlation: lists of unlike length");
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  if (x.size() < kFewestPairs) return std::nullopt;
  const double middle = static_cast<double>(x.size() - 1) / 2;  // mean of the ranks of either side
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - middle) * (x[i] - middle);
    yy += (y[i] - middle) * (y[i] - middle);
    xy += (x[i] - middle) * (y[i] - middle);
  }
  if (xx <= 0 || yy <= 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

}  // namespace warpsmith::stats

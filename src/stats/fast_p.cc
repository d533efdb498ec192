#include "warpsmith/stats/fast_p.h"

#include <algorithm>
#include <stdexcept>

namespace warpsmith::stats {

double fast_p(std::span<const double> speedups, std::size_t tasks, double p) {
  if (tasks == 0 || speedups.size() > tasks)
    throw std::invalid_argument("fast_p: fewer tasks than speedups, or none");
  const auto faster = std::count_if(speedups.begin(), speedups.end(), [p](double s) { return s > p; });
  return static_cast<double>(faster) / static_cast<double>(tasks);
}

std::vector<std::pair<double, double>> fast_p_curve(std::span<const double> speedups, std::size_t tasks) {
  std::vector<double> corners(speedups.begin(), speedups.end());
  corners.push_back(0);
  std::sort(corners.begin(), corners.end());
  corners.erase(std::unique(corners.begin(), corners.end()), corners.end());
  std::vector<std::pair<double, double>> curve;
  for (const double p : corners) curve.emplace_back(p, fast_p(speedups, tasks, p));
  return curve;
}

double pass_at_k(std::int64_t n, std::int64_t c, std::int64_t k) {
  if (c < 0 || c > n || k < 1 || k > n) throw std::invalid_argument("pass_at_k: 0 <= c <= n, 1 <= k <= n");
  double all_wrong = 1;
  for (std::int64_t i = 0; i < k; ++i)
    all_wrong *= static_cast<double>(std::max<std::int64_t>(n - c - i, 0)) / static_cast<double>(n - i);
  return 1 - all_wrong;
}

}  // namespace warpsmith::stats

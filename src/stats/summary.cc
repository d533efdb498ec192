#include "warpsmith/stats/summary.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace warpsmith::stats {

namespace {

void need_some(std::span<const double> values, const char* what) {
  if (values.empty()) throw std::invalid_argument(std::string(what) + " of no values");
}

}  // namespace

double mean(std::span<const double> values) {
  need_some(values, "mean");
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double median(std::span<const double> values) {
  need_some(values, "median");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
}

double variance(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return sum / static_cast<double>(values.size() - 1);
}

double standard_deviation(std::span<const double> values) { return std::sqrt(variance(values)); }

double quantile(std::span<const double> values, double share) {
  need_some(values, "quantile");
  if (!(share >= 0 && share <= 1)) throw std::invalid_argument("quantile: the share is not within [0, 1]");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double place = share * static_cast<double>(sorted.size() - 1);
  const std::size_t below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double median_error(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double range = quantile(values, 0.75) - quantile(values, 0.25);
  return 1.2533 * range / 1.349 / std::sqrt(static_cast<double>(values.size()));
}

double geometric_mean(std::span<const double> values) {
  need_some(values, "geometric mean");
  double sum = 0;
  for (const double value : values) {
    if (!(value >= 0)) throw std::invalid_argument("geometric mean of a negative value");
    sum += std::log(value);  // of 0: minus infinity, whose exp is 0 again
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

Spread spread_of(std::span<const double> values) {
  return {.count = values.size(),
          .mean = mean(values),
          .geometric_mean = geometric_mean(values),
          .max = *std::max_element(values.begin(), values.end()),
          .quantile75 = quantile(values, 0.75),
          .median = median(values),
          .quantile25 = quantile(values, 0.25)};
}

double round_toward_one(double speedup) {
  if (!std::isfinite(speedup) || speedup <= 0) return 0;
  const double hundredths = speedup * 100;
  const double nearest = std::round(hundredths);
  if (std::abs(hundredths - nearest) <= 1e-7) return nearest / 100;
  return (speedup > 1 ? std::floor(hundredths) : std::ceil(hundredths)) / 100;
}

}  // namespace warpsmith::stats

// Summaries of numbers: pure functions. Those that need at least one number throw std::invalid_argument
// without it.
#pragma once

#include <cstddef>
#include <span>

namespace warpsmith::stats {

double mean(std::span<const double> values);
double median(std::span<const double> values);  // of an even count: the mean of the middle two
// Sample variance (divided by n-1); 0 for fewer than two values.
double variance(std::span<const double> values);
double standard_deviation(std::span<const double> values);
// Standard error of the median of independent values, from their interquartile range: 1.253 x IQR / 1.349 /
// sqrt(n), which is exact for normal ones and holds out against stragglers. 0 for fewer than two values.
double median_error(std::span<const double> values);
// Linear between order statistics, as numpy's default; `share` within [0, 1].
double quantile(std::span<const double> values, double share);
// exp of the mean logarithm; 0 where a value is 0. Throws std::invalid_argument for a negative value.
double geometric_mean(std::span<const double> values);

// How values are spread: the columns of most tables of speedups.
struct Spread {
  std::size_t count = 0;
  double mean = 0, geometric_mean = 0, max = 0, quantile75 = 0, median = 0, quantile25 = 0;
};
Spread spread_of(std::span<const double> values);  // needs one value

// A reward: two decimals, toward 1.00 (1.118 -> 1.11, 0.992 -> 1.00). A double within 1e-9 of two decimals
// counts as them, so that 1.15, which as a double times 100 is 114.99999999999999, stays 1.15. Not finite, or
// not above 0: 0.
double round_toward_one(double speedup);

}  // namespace warpsmith::stats

// Whether two lists of numbers have one order.
#pragma once

#include <optional>
#include <span>

namespace warpsmith::stats {

// Spearman's rank correlation; equal values have the mean of their ranks. Nothing where there are fewer than
// three pairs, or all values of a side are equal. Throws std::invalid_argument where the lengths differ or a
// number is not finite.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace warpsmith::stats

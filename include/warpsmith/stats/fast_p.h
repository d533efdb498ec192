// KernelBench's fast_p (2502.10517) and the unbiased pass@k (2107.03374). Pure functions of numbers, which
// throw std::invalid_argument where these make no sense.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "warpsmith/stats/wins.h"

namespace warpsmith::stats {

// The thresholds at which fast_p is told.
inline constexpr std::array<double, 7> kFastPs = {0, 0.5, 0.8, 1, kSpeedupBar, 1.5, 2};
// The numbers of draws at which pass@k is told: KernelBench's, and those of frozen models.
inline constexpr std::array<std::int64_t, 3> kPassKs = {1, 5, 10};
inline constexpr std::array<std::int64_t, 3> kFrozenPassKs = {1, 8, 32};

// Share of `tasks` with a speedup strictly over p. `speedups`: one of each task that has a correct program;
// tasks without one count in the denominator alone.
double fast_p(std::span<const double> speedups, std::size_t tasks, double p);

// fast_p as a step function of p: from each `first` on, up to the next, it is `second`. Begins at p = 0.
std::vector<std::pair<double, double>> fast_p_curve(std::span<const double> speedups, std::size_t tasks);

// Chance that of k programs, drawn without replacement from n of which c are correct, one is correct at
// least: 1 - C(n - c, k) / C(n, k). 0 <= c <= n, 1 <= k <= n.
double pass_at_k(std::int64_t n, std::int64_t c, std::int64_t k);

}  // namespace warpsmith::stats

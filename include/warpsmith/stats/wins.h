// When a measured speedup counts as one. Pure functions of numbers.
#pragma once

namespace warpsmith::stats {

// The bar of CUDA-L1, which counts scores above it.
inline constexpr double kSpeedupBar = 1.01;

// CUDA-L1's count: by the score alone.
constexpr bool is_above_bar(double speedup) { return speedup > kSpeedupBar; }

// `low`: the lower end of the score's 95 % interval. A score whose time ended before its interval was narrow
// enough (`imprecise`) is no win.
constexpr bool is_win(double low, bool imprecise) { return !imprecise && low > kSpeedupBar; }

}  // namespace warpsmith::stats

// Plots of many points of a run: speedups of each stage, losses, fast_p.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/report/fast_p.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

// Shares of a stage's novel correct draws by their speedup, in bins of a quarter of a power of two; what lies
// beyond 1/16× and 64× is in the outermost bins.
std::string speedups_plot(const store::Results& results);
// Loss by optimiser step: at most 300 points a stage, each the mean of its neighbours.
std::string losses_plot(const store::Results& results);
// A plot for each group of tasks, of p up to 8.
std::string fast_p_plots(const std::vector<FastPRow>& rows);

}  // namespace warpsmith::report

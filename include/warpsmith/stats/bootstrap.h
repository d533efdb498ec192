// Bootstrap intervals over two crossed kinds of clusters: tasks and seeds.
#pragma once

#include <cstdint>
#include <vector>

namespace warpsmith::stats {

struct BootstrapInterval {
  double estimate = 0;  // mean over all cells
  double low = 0, high = 0;
};

struct BootstrapSettings {
  int resamples = 10000;
  double level = 0.95;
  std::uint64_t seed = 1;
};

// cells[t][s]: a figure of task t under seed s (for a geometric mean: its logarithm). Tasks and seeds are
// both resampled with replacement (crossed clusters: the seeds of all tasks together, as a training run that
// went well lifts every task), the mean of the cells that were drawn is taken, and the interval is the
// percentile one. The same settings give the same result. Throws std::invalid_argument where there is no cell
// or the rows differ in length.
BootstrapInterval bootstrap_mean(const std::vector<std::vector<double>>& cells,
                                 const BootstrapSettings& settings = {});

// Interval of the mean of after - before, paired cell by cell. The shapes must agree.
BootstrapInterval paired_bootstrap(const std::vector<std::vector<double>>& before,
                                   const std::vector<std::vector<double>>& after,
                                   const BootstrapSettings& settings = {});

}  // namespace warpsmith::stats

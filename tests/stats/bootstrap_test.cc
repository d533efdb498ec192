#include "warpsmith/stats/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

namespace warpsmith::stats {
namespace {

using Cells = std::vector<std::vector<double>>;

TEST(Bootstrap, EqualCellsHaveNoWidth) {
  const BootstrapInterval interval = bootstrap_mean(Cells(5, {2.0, 2.0, 2.0}));
  EXPECT_EQ(interval.estimate, 2);
  EXPECT_DOUBLE_EQ(interval.low, 2);
  EXPECT_DOUBLE_EQ(interval.high, 2);
}

TEST(Bootstrap, PairsRemoveWhatTasksHaveInCommon) {
  // Tasks differ by far more than the gain of 0.1 that each shows.
  const Cells before = {{1.0, 1.1}, {5.0, 5.2}, {9.0, 9.3}};
  Cells after = before;
  for (auto& row : after)
    for (double& cell : row) cell += 0.1;
  const BootstrapInterval paired = paired_bootstrap(before, after);
  EXPECT_NEAR(paired.estimate, 0.1, 1e-12);
  EXPECT_NEAR(paired.low, 0.1, 1e-12);
  EXPECT_NEAR(paired.high, 0.1, 1e-12);
  EXPECT_GT(bootstrap_mean(after).high - bootstrap_mean(after).low, 1);
}

TEST(Bootstrap, SameSettingsSameInterval) {
  const Cells cells = {{0.1, 0.5, -0.2}, {0.9, 0.4, 0.3}, {-0.1, 0.2, 0.8}};
  const BootstrapInterval a = bootstrap_mean(cells), b = bootstrap_mean(cells);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  // Few resamples: another seed gives another interval.
  EXPECT_NE(bootstrap_mean(cells, {.resamples = 20, .seed = 2}).low,
            bootstrap_mean(cells, {.resamples = 20}).low);
}

TEST(Bootstrap, CoversTheTruthAboutAsOftenAsItSays) {
  // 16 tasks, 6 seeds, effects of task, seed and cell; the true mean is 0.3.
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  int covered = 0;
  constexpr int kTrials = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    Cells cells(16, std::vector<double>(6));
    std::vector<double> seeds(6);
    for (double& seed : seeds) seed = 0.1 * normal(random);
    for (auto& row : cells) {
      const double task = 0.5 * normal(random);
      for (std::size_t s = 0; s < row.size(); ++s) row[s] = 0.3 + task + seeds[s] + 0.2 * normal(random);
    }
    const BootstrapInterval interval = bootstrap_mean(cells, {.resamples = 400});
    covered += interval.low <= 0.3 && 0.3 <= interval.high;
  }
  // The percentile interval is a little narrow for 16 clusters; crossed resampling a little wide. Binomial
  // sigma: 1.3 %.
  EXPECT_GE(covered, kTrials * 88 / 100);
  EXPECT_LE(covered, kTrials * 99 / 100);
}

TEST(Bootstrap, RefusesWhatIsNoTable) {
  EXPECT_THROW(bootstrap_mean({}), std::invalid_argument);
  EXPECT_THROW(bootstrap_mean({{}}), std::invalid_argument);
  EXPECT_THROW(bootstrap_mean({{1, 2}, {3}}), std::invalid_argument);
  EXPECT_THROW(paired_bootstrap({{1, 2}}, {{1, 2}, {3, 4}}), std::invalid_argument);
  EXPECT_THROW(bootstrap_mean({{1}}, {.resamples = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace warpsmith::stats

#include "warpsmith/stats/fast_p.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <stdexcept>

namespace warpsmith::stats {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(FastP, IsAShareOfAllTasksAndStrict) {
  const std::vector<double> speedups = {0.5, 1, 1.2, 3};  // two more tasks have no correct program
  EXPECT_DOUBLE_EQ(fast_p(speedups, 6, 0), 4.0 / 6);
  EXPECT_DOUBLE_EQ(fast_p(speedups, 6, 0.5), 3.0 / 6) << "over p, not at it";
  EXPECT_DOUBLE_EQ(fast_p(speedups, 6, 1), 2.0 / 6);
  EXPECT_DOUBLE_EQ(fast_p(speedups, 6, 3), 0);
  EXPECT_DOUBLE_EQ(fast_p({}, 6, 0), 0);
  EXPECT_THROW(fast_p(speedups, 3, 0), std::invalid_argument);
  EXPECT_THROW(fast_p({}, 0, 0), std::invalid_argument);
}

TEST(FastP, TheCurveFallsAtEachSpeedup) {
  EXPECT_THAT(fast_p_curve(std::vector<double>{2, 0.5, 2}, 4),
              ElementsAre(Pair(0, 0.75), Pair(0.5, 0.5), Pair(2, 0)));
  EXPECT_THAT(fast_p_curve({}, 4), ElementsAre(Pair(0, 0)));
}

TEST(PassAtK, IsTheUnbiasedEstimator) {
  EXPECT_DOUBLE_EQ(pass_at_k(10, 3, 1), 0.3);
  EXPECT_DOUBLE_EQ(pass_at_k(5, 2, 2), 1 - 3.0 / 10);             // C(3, 2) of C(5, 2)
  EXPECT_DOUBLE_EQ(pass_at_k(10, 3, 5), 1 - 21.0 / 252);          // C(7, 5) of C(10, 5)
  EXPECT_NEAR(pass_at_k(200, 20, 10), 0.660225623763214, 1e-12);  // 1 - prod_{i<10} (180 - i) / (200 - i)
  EXPECT_DOUBLE_EQ(pass_at_k(10, 6, 5), 1);                       // fewer than k wrong ones
  EXPECT_DOUBLE_EQ(pass_at_k(10, 0, 5), 0);
  EXPECT_DOUBLE_EQ(pass_at_k(1, 1, 1), 1);
}

// Every way to draw k of n without replacement, counted one by one.
double pass_by_enumeration(int n, int c, int k) {
  int draws = 0, passes = 0;
  for (unsigned chosen = 0; chosen < 1u << n; ++chosen) {
    if (std::popcount(chosen) != k) continue;
    ++draws;
    passes += (chosen & ((1u << c) - 1)) != 0;  // the first c are right
  }
  return static_cast<double>(passes) / draws;
}

TEST(PassAtK, IsTheShareOfAllDrawsThatHoldARightOne) {
  for (int n = 1; n <= 12; ++n)
    for (int c = 0; c <= n; ++c)
      for (int k = 1; k <= n; ++k)
        EXPECT_NEAR(pass_at_k(n, c, k), pass_by_enumeration(n, c, k), 1e-12) << n << " " << c << " " << k;
}

TEST(PassAtK, NeedsKDraws) {
  EXPECT_THROW(pass_at_k(4, 2, 5), std::invalid_argument);
  EXPECT_THROW(pass_at_k(4, 5, 1), std::invalid_argument);
  EXPECT_THROW(pass_at_k(4, -1, 1), std::invalid_argument);
  EXPECT_THROW(pass_at_k(4, 1, 0), std::invalid_argument);
}

}  // namespace
}  // namespace warpsmith::stats

#include "warpsmith/stats/interval.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace warpsmith::stats {
namespace {

// Values of scipy.stats.binomtest(count, of).proportion_ci(method="wilson").
TEST(WilsonInterval, IsWhatOthersCompute) {
  EXPECT_NEAR(wilson_interval(3, 24).low, 0.043443, 1e-5);
  EXPECT_NEAR(wilson_interval(3, 24).high, 0.310039, 1e-5);
  EXPECT_NEAR(wilson_interval(138, 216).low, 0.572923, 1e-5);
  EXPECT_NEAR(wilson_interval(138, 216).high, 0.700001, 1e-5);
}

TEST(WilsonInterval, HasWidthWhereNoneOrAllCount) {
  EXPECT_EQ(wilson_interval(0, 16).low, 0);
  EXPECT_NEAR(wilson_interval(0, 16).high, 0.193608, 1e-5);
  EXPECT_NEAR(wilson_interval(16, 16).low, 1 - 0.193608, 1e-5);
  EXPECT_EQ(wilson_interval(16, 16).high, 1);
}

TEST(WilsonInterval, RefusesWhatIsNoShare) {
  EXPECT_THROW(wilson_interval(0, 0), std::invalid_argument);
  EXPECT_THROW(wilson_interval(3, 2), std::invalid_argument);
  EXPECT_THROW(wilson_interval(-1, 2), std::invalid_argument);
}

}  // namespace
}  // namespace warpsmith::stats

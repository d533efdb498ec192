#include "warpsmith/stats/wins.h"

#include <gtest/gtest.h>

namespace warpsmith::stats {
namespace {

TEST(Wins, TheIntervalMustLieAboveTheBar) {
  EXPECT_TRUE(is_win(1.02, false));
  EXPECT_TRUE(is_win(1.0101, false));
  EXPECT_FALSE(is_win(1.01, false)) << "above, not at";
  EXPECT_FALSE(is_win(0.98, false)) << "1.08x [0.98, 1.19] shows no difference";
  EXPECT_FALSE(is_win(0, false)) << "no interval is known";
  EXPECT_FALSE(is_win(1.5, true)) << "imprecise";
}

TEST(Wins, ThePapersCountIsByTheScore) {
  EXPECT_TRUE(is_above_bar(1.08));
  EXPECT_FALSE(is_above_bar(1.01));
}

}  // namespace
}  // namespace warpsmith::stats

#include "warpsmith/stats/wins.h"

#include <gtest/gtest.h>

namespace warpsmith::stats {
namespace {

TEST(Wins, TheIntervalMustLieAboveTheBar) {
  EXPECT_TRUE(is_win(1.02));
  EXPECT_TRUE(is_win(1.0101));
  EXPECT_FALSE(is_win(1.01)) << "above, not at";
  EXPECT_FALSE(is_win(0.98)) << "1.08x [0.98, 1.19] shows no difference";
  EXPECT_FALSE(is_win(0)) << "no interval is known";
}

TEST(Wins, ThePapersCountIsByTheScore) {
  EXPECT_TRUE(is_above_bar(1.08));
  EXPECT_FALSE(is_above_bar(1.01));
}

TEST(Wins, AreCountedBesideThePapersCount) {
  WinCount count;
  EXPECT_EQ(count.win_share(), 0) << "of none";
  count.add(is_win(0.98), 1.08);
  count.add(is_win(1.4), 1.5);
  count.add(is_win(0.9), 0.95);
  count.add(false, 0);
  EXPECT_EQ(count.of, 4);
  EXPECT_EQ(count.win_share(), 0.25);
  EXPECT_EQ(count.above_share(), 0.5);
}

TEST(HostBoundTask, MostMeasurementsThatKnowSaySo) {
  HostBound task;
  EXPECT_FALSE(task.holds()) << "nothing is known on a CPU";
  task.add(std::nullopt);
  task.add(true);
  EXPECT_TRUE(task.holds());
  task.add(false);
  EXPECT_FALSE(task.holds()) << "as many say no";
  task.add(true);
  task.add(std::nullopt);
  EXPECT_TRUE(task.holds());
}

}  // namespace
}  // namespace warpsmith::stats

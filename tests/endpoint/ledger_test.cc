#include "warpsmith/endpoint/ledger.h"

#include <gtest/gtest.h>

namespace warpsmith::endpoint {
namespace {

TEST(Ledger, ABudgetOfTokensIsNotPassedWhateverAnswersTake) {
  Ledger ledger({.tokens = 100}, {});
  EXPECT_TRUE(ledger.hold({20, 40}));
  EXPECT_FALSE(ledger.hold({20, 21})) << "both together might take 101";
  EXPECT_TRUE(ledger.hold({20, 20}));
  ledger.settle({20, 40}, {15, 5});
  EXPECT_EQ(ledger.spent(), (Tokens{15, 5}));
  EXPECT_EQ(ledger.held(), (Tokens{20, 20}));
  EXPECT_TRUE(ledger.hold({20, 20}));
  EXPECT_FALSE(ledger.hold({1, 0}));
  ledger.release({20, 20});
  EXPECT_TRUE(ledger.hold({40, 0}));
}

TEST(Ledger, ABudgetOfMoneyIsOneOfPrices) {
  Ledger ledger({.money = 1.0}, {.prompt = 2, .completion = 10});
  EXPECT_TRUE(ledger.hold({100'000, 80'000}));  // 0.2 and 0.8
  EXPECT_FALSE(ledger.hold({1, 0}));
  ledger.settle({100'000, 80'000}, {100'000, 10'000});
  EXPECT_DOUBLE_EQ(ledger.money(), 0.3);
  EXPECT_TRUE(ledger.hold({0, 70'000}));
}

TEST(Ledger, WhatWasLostCountsInFull) {
  Ledger ledger({.tokens = 100}, {});
  ledger.lose({30, 30});
  EXPECT_EQ(ledger.spent().all(), 60u);
  EXPECT_EQ(ledger.lost().all(), 60u);
  EXPECT_FALSE(ledger.hold({41, 0}));
  EXPECT_TRUE(ledger.hold({40, 0}));
}

TEST(Pace, WithoutALimitNothingWaits) {
  Pace pace(0);
  pace.take(0, 1e9);
  EXPECT_EQ(pace.wait_s(0, 1e9), 0);
}

TEST(Pace, ABurstAndThenAnEvenPace) {
  Pace pace(600, 0.01);  // ten a second, six at once
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(pace.wait_s(100, 1), 0) << i;
    pace.take(100, 1);
  }
  EXPECT_NEAR(pace.wait_s(100, 1), 0.1, 1e-9);
  EXPECT_NEAR(pace.wait_s(100.05, 1), 0.05, 1e-9);
  EXPECT_EQ(pace.wait_s(100.11, 1), 0);
  EXPECT_EQ(pace.wait_s(1000, 6), 0) << "no more than a burst is kept";
  pace.take(1000, 6);
  EXPECT_GT(pace.wait_s(1000, 1), 0);
}

TEST(Pace, WhatIsMoreThanABurstWaitsForAFullOneAndIsPaidBack) {
  Pace pace(60, 0.1);  // one a second, six at once
  EXPECT_EQ(pace.wait_s(0, 10), 0);
  pace.take(0, 10);
  EXPECT_NEAR(pace.wait_s(0, 1), 5, 1e-9) << "four are owed";
  pace.correct(-4);
  EXPECT_NEAR(pace.wait_s(0, 1), 1, 1e-9);
}

}  // namespace
}  // namespace warpsmith::endpoint

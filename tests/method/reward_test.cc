#include "warpsmith/method/reward.h"

#include <gtest/gtest.h>

#include <cmath>

#include "warpsmith/base/error.h"

namespace warpsmith::method {
namespace {

Measurement measured(Verdict verdict, double speedup = 0, double half = 0) {
  Measurement m;
  m.verdict = verdict;
  m.speedup = speedup;
  m.speedup_low = speedup - half;
  m.speedup_high = speedup + half;
  return m;
}

TEST(Outcome, EveryVerdictHasOne) {
  for (std::size_t i = 0; i < kVerdictNames.size(); ++i) {
    const auto verdict = static_cast<Verdict>(i);
    const Outcome outcome = outcome_of(measured(verdict, 1.5, 0.01));
    if (verdict == Verdict::kOk) {
      EXPECT_EQ(outcome, Outcome::kValid);
    } else if (verdict == Verdict::kUnsupported || verdict == Verdict::kNotMeasured ||
               verdict == Verdict::kUnstable) {
      EXPECT_EQ(outcome, Outcome::kLeftOut) << kVerdictNames[i];
    } else {
      EXPECT_EQ(outcome, Outcome::kFailure) << kVerdictNames[i];
    }
  }
}

TEST(Outcome, WideIntervalsAreLeftOut) {
  EXPECT_EQ(outcome_of(measured(Verdict::kOk, 2.0, 0.099)), Outcome::kValid);
  EXPECT_EQ(outcome_of(measured(Verdict::kOk, 2.0, 0.101)), Outcome::kLeftOut);
  EXPECT_EQ(outcome_of(measured(Verdict::kOk, 2.0, 0.399), 0.2), Outcome::kValid);
  EXPECT_EQ(outcome_of(measured(Verdict::kOk, 2.0, 0.401), 0.2), Outcome::kLeftOut);
  EXPECT_EQ(outcome_of(measured(Verdict::kOk, 0)), Outcome::kLeftOut);
  EXPECT_EQ(outcome_of(measured(Verdict::kOk, NAN)), Outcome::kLeftOut);
}

TEST(Reward, LogOrRaw) {
  EXPECT_DOUBLE_EQ(reward_of(2.0, parse_reward_kind("log")), std::log(2.0));
  EXPECT_DOUBLE_EQ(reward_of(2.0, parse_reward_kind("raw")), 2.0);
  EXPECT_DOUBLE_EQ(reward_of(0.0, RewardKind::kLog), std::log(0.01));
  EXPECT_THROW(parse_reward_kind("square"), Error);
}

TEST(Milestones, StepsAtFivePercentOverEagerAndOverTheBest) {
  EXPECT_EQ(parse_reward_kind("milestones"), RewardKind::kMilestones);
  EXPECT_EQ(milestone_of(0.50, std::nullopt), 1);
  EXPECT_EQ(milestone_of(1.04, std::nullopt), 1);
  EXPECT_EQ(milestone_of(9.00, std::nullopt), 2) << "it is not known how good the best one is";
  EXPECT_EQ(milestone_of(1.05, 1.0), 3) << "eager is the best";
  EXPECT_EQ(milestone_of(1.05, 2.0), 2);
  EXPECT_EQ(milestone_of(2.09, 2.0), 2);
  EXPECT_EQ(milestone_of(2.11, 2.0), 3);
  EXPECT_EQ(milestone_of(1.04, 0.5), 1) << "faster than a slow baseline alone";
  EXPECT_EQ(milestone_of(1.05, 0.5), 3);
}

TEST(Milestones, AScoreOverAnotherBaselineIsMadeOneOverEager) {
  Measurement m = measured(Verdict::kOk, 1.2);
  m.speedup_rounded = 1.2;
  EXPECT_DOUBLE_EQ(over_eager(m), 1.2);
  m.baseline_ratio = 1.5;
  EXPECT_DOUBLE_EQ(over_eager(m), 1.8);
}

TEST(Discounted, ATurnHasPartOfThoseBehindIt) {
  const auto one = discounted({{2.0, -2.0, 3.0}, {-3.0}}, 0.5);  // of mean 0
  ASSERT_EQ(one.size(), 2u);
  EXPECT_DOUBLE_EQ(one[0][0].value(), 2.0 - 1.0 + 0.75);
  EXPECT_DOUBLE_EQ(one[0][1].value(), -2.0 + 1.5);
  EXPECT_DOUBLE_EQ(one[0][2].value(), 3);
  EXPECT_DOUBLE_EQ(one[1][0].value(), -3);
  const auto gap = discounted({{1.0, std::nullopt, 4.0}, {-5.0}}, 0.5);
  EXPECT_DOUBLE_EQ(gap[0][0].value(), 2) << "the third turn stays two turns away";
  EXPECT_FALSE(gap[0][1].has_value());
  EXPECT_TRUE(discounted({}, 0.4).empty());
  EXPECT_EQ(discounted({{1.0, -1.0}}, 0), (std::vector<Rewards>{{1.0, -1.0}}));
  EXPECT_EQ(discounted({{1.0, -1.0}}, 1), (std::vector<Rewards>{{0.0, -1.0}}));
  EXPECT_THROW(discounted({{1.0}}, 1.1), Error);
  EXPECT_THROW(discounted({{1.0}}, -0.1), Error);
  EXPECT_THROW(discounted({{1.0}}, NAN), Error);
}

TEST(Discounted, EqualRewardsSayNothingOfEarlyAndLateTurns) {
  for (const double reward : {-2.5, 3.0})
    for (const Rewards& turns : discounted({{reward, reward, reward}, {reward, reward}}, 0.4))
      for (const auto& r : turns) EXPECT_DOUBLE_EQ(r.value(), 0);
  // A level that is added to all rewards changes nothing.
  const auto low = discounted({{-3.0, -1.0}, {-2.0, -3.0}}, 0.4);
  const auto high = discounted({{1.0, 3.0}, {2.0, 1.0}}, 0.4);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t t = 0; t < 2; ++t) EXPECT_NEAR(low[i][t].value(), high[i][t].value(), 1e-12);
}

TEST(LengthPenalty, IsTheShareOfTheLongestAnswer) {
  EXPECT_DOUBLE_EQ(less_length(1.5, 0, 100, 400), 1.5);
  EXPECT_DOUBLE_EQ(less_length(1.5, 0.2, 100, 400), 1.45);
  EXPECT_DOUBLE_EQ(less_length(-1, 0.2, 400, 400), -1.2);
  EXPECT_DOUBLE_EQ(less_length(-1, 0.2, 500, 400), -1.2);  // an estimate of a server's answer
  EXPECT_THROW(less_length(1, -0.1, 1, 400), Error);
  EXPECT_THROW(less_length(1, NAN, 1, 400), Error);
  EXPECT_THROW(less_length(1, 0.1, 1, 0), Error);
}

TEST(RewardSmoother, ClipsWhatIsFarFromTheMean) {
  RewardSmoother smoother({.clip = 1.5, .window = 100});
  smoother.add("t", 1, {0, 0, 1, 1});  // mean 0.5, deviation 0.5
  EXPECT_DOUBLE_EQ(smoother.smooth("t", 1), 1);
  EXPECT_DOUBLE_EQ(smoother.smooth("t", 0.25), -0.5);
  EXPECT_DOUBLE_EQ(smoother.smooth("t", 100), 1.5);
  EXPECT_DOUBLE_EQ(smoother.smooth("t", -100), -1.5);
  EXPECT_DOUBLE_EQ(smoother.smooth("other", 3), 0);  // nothing known
}

TEST(RewardSmoother, TheWindowRolls) {
  RewardSmoother smoother({.clip = 1.5, .window = 2});
  smoother.add("t", 0, {100});
  smoother.add("t", 1, {0});
  EXPECT_DOUBLE_EQ(smoother.mean("t"), 50);
  smoother.add("t", 2, {4});
  EXPECT_DOUBLE_EQ(smoother.mean("t"), 2);  // iteration 0 has gone
  EXPECT_DOUBLE_EQ(smoother.deviation("t"), 2);
  smoother.add("t", 2, {8});
  EXPECT_DOUBLE_EQ(smoother.mean("t"), 4);
}

TEST(RewardSmoother, FailuresLieBelowEveryValidScore) {
  RewardSmoother smoother({.clip = 1.5, .window = 100});
  EXPECT_DOUBLE_EQ(smoother.failure("t", 1.0), -1.5);     // no valid score
  smoother.add("t", 1, {0, 0, 0, 0, 0, 0, 0, 0, 0, -5});  // the slow one is clipped to -1.5 itself
  EXPECT_DOUBLE_EQ(smoother.smooth("t", -5), -1.5);
  EXPECT_DOUBLE_EQ(smoother.failure("t", 1.0), -2.5);
  smoother.add("u", 1, {0, 1});  // lowest r' is -1
  EXPECT_DOUBLE_EQ(smoother.failure("u", 1.0), -2.0);
  EXPECT_DOUBLE_EQ(smoother.failure("u", 0.1), -1.5);
}

TEST(GroupAdvantages, HandComputed) {
  const auto a = group_advantages({1.0, -1.5, std::nullopt, 0.5});
  ASSERT_TRUE(a);
  // mean 0; variance (1 + 2.25 + 0.25) / 3
  const double deviation = std::sqrt(3.5 / 3);
  EXPECT_DOUBLE_EQ((*a)[0].value(), 1.0 / deviation);
  EXPECT_DOUBLE_EQ((*a)[1].value(), -1.5 / deviation);
  EXPECT_FALSE((*a)[2].has_value());
  EXPECT_DOUBLE_EQ((*a)[3].value(), 0.5 / deviation);
}

TEST(LeaveOneOutAdvantages, AreOverTheMeanOfTheOthers) {
  const auto a = leave_one_out_advantages({3.0, -1.0, std::nullopt, 1.0});
  ASSERT_TRUE(a);
  EXPECT_DOUBLE_EQ((*a)[0].value(), 3);
  EXPECT_DOUBLE_EQ((*a)[1].value(), -3);
  EXPECT_FALSE((*a)[2].has_value());
  EXPECT_DOUBLE_EQ((*a)[3].value(), 0);
  EXPECT_FALSE(leave_one_out_advantages({1.0, std::nullopt}));
  EXPECT_FALSE(leave_one_out_advantages({2.0, 2.0}));
  EXPECT_EQ(advantages_of({3.0, 1.0}, parse_advantage_kind("leave_one_out")),
            (Advantages{std::optional(2.0), std::optional(-2.0)}));
  EXPECT_EQ(advantages_of({3.0, 1.0}, parse_advantage_kind("group")),
            (Advantages{std::optional(1.0), std::optional(-1.0)}));
  EXPECT_THROW(parse_advantage_kind("mean"), Error);
}

TEST(GroupAdvantages, EqualOrSingleRewardsAreSkipped) {
  EXPECT_FALSE(group_advantages({}));
  EXPECT_FALSE(group_advantages({1.0}));
  EXPECT_FALSE(group_advantages({1.0, std::nullopt}));
  EXPECT_FALSE(group_advantages({-1.5, -1.5, -1.5}));
  EXPECT_FALSE(group_advantages({0.1 + 0.2, 0.3}));
}

}  // namespace
}  // namespace warpsmith::method

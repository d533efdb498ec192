#include "warpsmith/stats/score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>

#include "warpsmith/stats/summary.h"

namespace warpsmith::stats {
namespace {

const Protocol kPaper;  // 7 x 5, ±1 %

// Takes rounds from `next` as the measurement does, to at most 1,400, and says what came out.
Score measure(const std::function<double()>& next, const Protocol& protocol) {
  std::vector<double> ratios;
  while (ratios.size() < 1400) {
    const std::size_t wanted = static_cast<std::size_t>(next_look(static_cast<int>(ratios.size()), protocol));
    while (ratios.size() < wanted) ratios.push_back(next());
    if (narrow_enough(ratios, protocol)) break;
  }
  return score_of(ratios, protocol);
}

// Share of `trials` in which the interval holds `truth`.
double coverage(const std::function<double()>& next, double truth, int trials,
                const Protocol& protocol = kPaper) {
  int covered = 0;
  for (int i = 0; i < trials; ++i) {
    const Score score = measure(next, protocol);
    covered += std::abs(score.log_score - truth) <= score.half_width;
  }
  return static_cast<double>(covered) / trials;
}

TEST(LogRatios, AreOfBaselineOverCandidate) {
  const std::vector<std::int64_t> baseline = {200, 100}, candidate = {100, 100};
  const std::vector<double> ratios = log_ratios(baseline, candidate);
  ASSERT_EQ(ratios.size(), 2u);
  EXPECT_DOUBLE_EQ(ratios[0], std::log(2.0));
  EXPECT_EQ(ratios[1], 0);
}

TEST(LogRatios, RefuseUnpairedOrImpossibleTimes) {
  EXPECT_THROW(log_ratios(std::vector<std::int64_t>{1, 2}, std::vector<std::int64_t>{1}),
               std::invalid_argument);
  EXPECT_THROW(log_ratios(std::vector<std::int64_t>{0}, std::vector<std::int64_t>{1}), std::invalid_argument);
  EXPECT_THROW(log_ratios(std::vector<std::int64_t>{1}, std::vector<std::int64_t>{-1}),
               std::invalid_argument);
}

TEST(BucketMeans, AreOfConsecutiveBlocks) {
  EXPECT_EQ(bucket_means(std::vector<double>{1, 3, 5, 7, 10, 20}, 3), (std::vector<double>{2, 6, 15}));
  EXPECT_THROW(bucket_means(std::vector<double>{1, 2, 3}, 2), std::invalid_argument);
  EXPECT_THROW(bucket_means(std::vector<double>{}, 7), std::invalid_argument);
}

TEST(BucketMedians, AreOfConsecutiveBlocks) {
  EXPECT_EQ(bucket_medians(std::vector<double>{1, 3, 50, 7, 10, 0}, 2), (std::vector<double>{3, 7}));
  EXPECT_THROW(bucket_medians(std::vector<double>{1, 2, 3}, 2), std::invalid_argument);
}

TEST(Score, IsTheMedianOfBucketMeans) {
  std::vector<double> ratios(35, std::log(1.5));
  for (std::size_t i = 5; i < 10; ++i) ratios[i] = 9.0;  // one bucket went astray
  const Score score = score_of(ratios, kPaper);
  EXPECT_DOUBLE_EQ(score.speedup(), 1.5);
  EXPECT_EQ(score.rounds, 35);
  EXPECT_GT(score.variance, variance_gate(kPaper));
}

TEST(Score, EqualProgramsUnderNoiseScoreOne) {
  // Times with heavy one-sided noise. The mean of ratios lies above 1 here; the score must not.
  std::mt19937_64 random(3);
  std::exponential_distribution<double> noise(3.0);
  std::vector<double> ratios, plain;
  for (int i = 0; i < 70000; ++i) {
    const double baseline = 1 + noise(random), candidate = 1 + noise(random);
    ratios.push_back(std::log(baseline / candidate));
    plain.push_back(baseline / candidate);
  }
  EXPECT_GT(mean(plain), 1.03);
  EXPECT_NEAR(score_of(ratios, kPaper).speedup(), 1.0, 0.01);
}

TEST(Score, HalfWidthIsInLogUnits) {
  std::vector<double> ratios;
  for (int b = 0; b < 7; ++b) ratios.insert(ratios.end(), 5, 0.7 + 0.001 * b);
  const Score score = score_of(ratios, kPaper);
  EXPECT_DOUBLE_EQ(score.log_score, 0.703);
  EXPECT_NEAR(score.variance, 1e-6 * 28 / 6, 1e-12);
  EXPECT_NEAR(score.half_width, 2.767 * std::sqrt(1e-6 * 28 / 6 / 7), 1e-12);
  EXPECT_NEAR(score.low(), std::exp(0.703 - score.half_width), 1e-12);
  EXPECT_NEAR(score.high(), std::exp(0.703 + score.half_width), 1e-12);
}

TEST(IntervalFactor, IsThatOfTheMedianOfNormals) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  for (const int buckets : {3, 5, 7, 8, 11, 15, 21, 30}) {
    constexpr int kTrials = 20000;
    int inside = 0;
    std::vector<double> values(static_cast<std::size_t>(buckets));
    for (int i = 0; i < kTrials; ++i) {
      for (double& value : values) value = normal(random);
      inside += std::abs(median(values)) <= interval_factor(buckets) * std::sqrt(variance(values) / buckets);
    }
    // Binomial sigma 0.15 %; beyond the table the factor is meant to be a little wide.
    EXPECT_GE(inside, kTrials * 0.944) << buckets;
    EXPECT_LE(inside, kTrials * (buckets <= 15 ? 0.956 : 0.965)) << buckets;
  }
  EXPECT_THROW(interval_factor(2), std::invalid_argument);
  EXPECT_THROW(interval_factor(32), std::invalid_argument);
}

TEST(VarianceGate, IsTenTimesWhatTheTargetImplies) {
  // A measurement whose interval is just the target has a tenth of the gate's variance.
  const double target_variance = 7 * std::pow(0.01 / interval_factor(7), 2);
  EXPECT_DOUBLE_EQ(variance_of(0.01, 7), target_variance);
  EXPECT_DOUBLE_EQ(variance_gate(kPaper), 10 * target_variance);
  EXPECT_NEAR(variance_gate(kPaper), 0.00091, 0.00001);
  Protocol finer = kPaper;
  finer.target = 0.005;
  EXPECT_NEAR(variance_gate(finer), 0.00023, 0.00001);
  finer.variance_gate = 0.005;
  EXPECT_EQ(variance_gate(finer), 0.005);
}

TEST(Stopping, LooksAtTheMinimumThenEveryQuarterMore) {
  EXPECT_EQ(next_look(0, kPaper), 35);
  EXPECT_EQ(next_look(35, kPaper), 42);
  EXPECT_EQ(next_look(280, kPaper), 350);
  EXPECT_EQ(next_look(3, kPaper), 35) << "not before the first";
  EXPECT_EQ(next_look(32, kPaper), 35) << "whole buckets again";
  EXPECT_EQ(next_look(290, kPaper), 357);
  int taken = 0;
  for (int look = 0; look < 30; ++look) {
    const int next = next_look(taken, kPaper);
    ASSERT_GT(next, taken);
    ASSERT_EQ(next % 7, 0);
    taken = next;
  }
}

TEST(Stopping, QuietRoundsStopAtTheMinimumAndNoEarlier) {
  const std::vector<double> quiet(35, 0.2);
  EXPECT_TRUE(narrow_enough(quiet, kPaper));
  EXPECT_FALSE(narrow_enough(std::span(quiet).first(28), kPaper));
}

// Seven buckets that differ: the interval is the same whatever their rounds.
TEST(Stopping, AFinerGoalThanTheTargetCountsForSoManyRoundsAlone) {
  Protocol protocol = kPaper;
  const auto rounds = [&](int count, double share_of_target) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back(i / (count / 7));
    const double now = score_of(values, protocol).half_width;
    for (double& v : values) v *= share_of_target * protocol.target / now;
    return values;
  };
  EXPECT_TRUE(narrow_enough(rounds(35, 0.9), protocol));
  protocol.stop_at = 0.65;
  EXPECT_FALSE(narrow_enough(rounds(35, 0.9), protocol));
  EXPECT_TRUE(narrow_enough(rounds(35, 0.6), protocol));
  EXPECT_FALSE(narrow_enough(rounds(700, 0.9), protocol));
  protocol.fine_rounds = 70;
  EXPECT_FALSE(narrow_enough(rounds(70, 0.9), protocol));
  EXPECT_TRUE(narrow_enough(rounds(77, 0.9), protocol));
  EXPECT_FALSE(narrow_enough(rounds(77, 1.1), protocol));
  protocol.fine_rounds = -1;
  EXPECT_THROW(check(protocol), std::invalid_argument);
}

TEST(Stopping, NoiseTakesMoreRounds) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> quiet(0.0, 0.005), loud(0.0, 0.05);
  EXPECT_EQ(measure([&] { return quiet(random); }, kPaper).rounds, 35);
  const Score score = measure([&] { return loud(random); }, kPaper);
  EXPECT_GT(score.rounds, 70);
  EXPECT_LE(score.variance, variance_gate(kPaper));
  EXPECT_GE(score.half_width, kPaper.target);  // stopped at a later look
}

TEST(Coverage, NormalRounds) {
  std::mt19937_64 random(7);
  for (const double deviation : {0.005, 0.02, 0.04}) {
    std::normal_distribution<double> normal(0.4, deviation);
    const double share = coverage([&] { return normal(random); }, 0.4, 1500);
    EXPECT_GE(share, 0.93) << deviation;  // binomial sigma 0.6 %
    EXPECT_LE(share, 0.975) << deviation;
  }
}

TEST(Coverage, RoundsThatHangTogether) {
  // First-order autoregression, r = 0.3: what a drifting clock does to neighbouring rounds.
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal(0.0, 0.015);
  double last = 0;
  EXPECT_GE(coverage([&] { return last = 0.3 * last + normal(random); }, 0.0, 1500), 0.91);
}

TEST(Coverage, RoundsThatTheHostDisturbs) {
  // One round in a hundred loses its core in one of the two arms.
  std::mt19937_64 random(9);
  std::normal_distribution<double> normal(0.0, 0.01);
  std::uniform_real_distribution<double> uniform;
  const auto next = [&] {
    const double lot = uniform(random);
    return normal(random) + (lot < 0.005 ? 1.4 : lot < 0.01 ? -1.4 : 0.0);
  };
  EXPECT_GE(coverage(next, 0.0, 400), 0.91);
}

// What a host's clock gives while the host is busy: every fifth round is longer by a third in one of the
// arms.
TEST(Coverage, RoundsThatTheHostDisturbsAllTheTimeCountByTheirMedians) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(0.2, 0.02);
  std::uniform_real_distribution<double> uniform;
  const auto next = [&] {
    const double lot = uniform(random);
    return normal(random) + (lot < 0.1 ? 0.3 : lot < 0.2 ? -0.3 : 0.0);
  };
  Protocol medians;
  medians.bucket_medians = true;
  EXPECT_GE(coverage(next, 0.2, 400, medians), 0.91);
  std::vector<double> ratios;
  for (int i = 0; i < 350; ++i) ratios.push_back(next());
  EXPECT_LT(score_of(ratios, medians).half_width, 0.4 * score_of(ratios, kPaper).half_width);
}

// Rounds of a few places, each with an offset of its own: what of the truth the interval covers.
TEST(GroupedHalfWidth, CoversTheTruthWherePlacesDiffer) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (const auto& [between, within] : {std::pair{0.03, 0.01}, std::pair{0.0, 0.01}}) {
    int covered = 0, plainly = 0;
    constexpr int kTrials = 2000, kPlaces = 10, kRounds = 140;
    for (int trial = 0; trial < kTrials; ++trial) {
      double offsets[kPlaces];
      for (double& offset : offsets) offset = between * normal(random);
      std::vector<double> ratios;
      std::vector<int> places;
      for (int i = 0; i < kRounds; ++i) {
        places.push_back(static_cast<int>(random() % kPlaces));
        ratios.push_back(offsets[places.back()] + within * normal(random));
      }
      double sum = 0;
      for (const double ratio : ratios) sum += ratio;
      covered += std::abs(sum / kRounds) <= grouped_half_width(ratios, places);
      plainly += std::abs(score_of(ratios, {}).log_score) <= score_of(ratios, {}).half_width;
    }
    EXPECT_GE(covered, 0.92 * kTrials) << between;
    EXPECT_LE(covered, 0.98 * kTrials) << between;
    if (between > 0) {
      EXPECT_LE(plainly, 0.8 * kTrials) << "then nobody needs it";
    }
  }
}

TEST(GroupedHalfWidth, SaysNothingOfFewGroupsAndBearsAnOutlier) {
  EXPECT_EQ(grouped_half_width({}, {}), 0);
  const std::vector<double> few = {0.1, 0.2, 0.3, 0.4};
  EXPECT_EQ(grouped_half_width(few, std::vector<int>{0, 1, 2, 2}), 0);
  EXPECT_GT(grouped_half_width(few, std::vector<int>{0, 1, 2, 3}), 0.1);
  EXPECT_THROW(grouped_half_width(few, std::vector<int>{0}), std::invalid_argument);
  std::vector<double> ratios;
  std::vector<int> places;
  for (int i = 0; i < 40; ++i) {
    ratios.push_back(i % 2 == 0 ? 0.001 : -0.001);
    places.push_back(i / 2 % 10);
  }
  ratios[7] = 1.5;
  EXPECT_LT(grouped_half_width(ratios, places), 0.001);
}

TEST(Protocol, NamesTheFieldThatMakesNoSense) {
  EXPECT_NO_THROW(check(kPaper));
  const auto message = [](Protocol protocol) -> std::string {
    try {
      check(protocol);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message({.buckets = 2}), "buckets must be 3 to 31");
  EXPECT_EQ(message({.rounds_a_bucket = 0}), "rounds_a_bucket must be at least 1");
  EXPECT_EQ(message({.target = 0}), "target must lie between 0 and 1");
  EXPECT_EQ(message({.target = std::nan("")}), "target must lie between 0 and 1");
  EXPECT_EQ(message({.variance_gate = -1}), "variance_gate must not be negative");
  EXPECT_EQ(message({.give_up_below = 1.5}), "give_up_below must lie between 0 and 1");
}

}  // namespace
}  // namespace warpsmith::stats

#include "warpsmith/measure/baselines.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plain_task.h"

namespace warpsmith::measure {
namespace {

PairResult pair_of(std::int64_t eager_ns, std::int64_t other_ns, int rounds = 35) {
  PairResult pairs;
  for (int i = 0; i < rounds; ++i) {
    pairs.baseline_ns.push_back(eager_ns + i % 3);
    pairs.candidate_ns.push_back(other_ns + (i + 1) % 3);
    pairs.baseline_places.push_back(0);
    pairs.candidate_places.push_back(0);
  }
  return pairs;
}

BaselineTiming covered(double ratio, double half) {
  BaselineTiming t;
  t.name = "cuda_graph";
  t.state = BaselineState::kCovered;
  t.ratio = ratio;
  t.low = ratio * std::exp(-half);
  t.high = ratio * std::exp(half);
  return t;
}

Measurement over_eager(double speedup, double half) {
  Measurement m;
  m.baseline = "eager";
  m.verdict = Verdict::kOk;
  m.rounds = 35;
  m.speedup = m.speedup_rounded = speedup;
  m.speedup_low = speedup * std::exp(-half);
  m.speedup_high = speedup * std::exp(half);
  m.baseline_ns = 12000;
  m.candidate_ns = 12000 / speedup;
  return m;
}

TEST(BaselineRows, SayTheMathThatCountsForTheTaskAndAreKeptByIt) {
  Settings strict, loose;
  loose.math = "torch_default";
  task::Task task = make_task("", {}, {}), other = task;
  task.digest = "d";
  EXPECT_EQ(blank_timing(strict, task, "cudnn").math, "strict");
  EXPECT_EQ(blank_timing(loose, task, "cudnn").math, "torch_default");
  const std::string key = cache_key(strict, task, "cudnn");
  EXPECT_EQ(key, cache_key(strict, task, "cudnn"));
  EXPECT_NE(key, cache_key(loose, task, "cudnn"));
  EXPECT_NE(key, cache_key(strict, task, "cuda_graph"));
  EXPECT_NE(key, cache_key(strict, other, "cudnn"));
  task.math = "torch_default";
  EXPECT_EQ(blank_timing(strict, task, "cudnn").math, "torch_default");
  EXPECT_NE(key, cache_key(strict, task, "cudnn"));
  EXPECT_EQ(cache_key(loose, task, "cudnn"), cache_key(strict, task, "cudnn"));
}

TEST(WritePair, GivesTheRatioOfEagerToTheBaseline) {
  BaselineTiming t;
  write_pair({}, pair_of(12000, 8000), 16, t);
  EXPECT_EQ(t.state, BaselineState::kCovered);
  EXPECT_NEAR(t.ratio, 1.5, 1e-3);
  EXPECT_LT(t.low, t.ratio);
  EXPECT_GT(t.high, t.ratio);
  EXPECT_NEAR(t.eager_ns, 12001, 1);
  EXPECT_NEAR(t.baseline_ns, 8001, 1);
  EXPECT_EQ(t.rounds, 35);
  EXPECT_EQ(t.batch, 16);
  EXPECT_FALSE(t.imprecise);
}

// The first halves of its rounds say one thing, the others another.
PairResult unsteady_pair() {
  PairResult pairs = pair_of(12000, 8000);
  for (std::size_t i = 0; i < pairs.candidate_ns.size(); ++i)
    if (i % 7 < 3) pairs.candidate_ns[i] *= 2;
  return pairs;
}

TEST(WriteSteadyPair, ABusyMomentCostsOnePairMore) {
  Settings settings;
  PairSettings pairs;
  pairs.candidate_calls = 16;
  const std::uint64_t first_key = pairs.key = 5;
  int taken = 0;
  BaselineTiming t;
  write_steady_pair(
      settings, pairs, [&] { return taken++ == 0 ? unsteady_pair() : pair_of(12000, 8000); }, t);
  EXPECT_EQ(t.state, BaselineState::kCovered) << t.reason;
  EXPECT_NEAR(t.ratio, 1.5, 1e-3);
  EXPECT_EQ(t.batch, 16);
  EXPECT_EQ(taken, 2);
  EXPECT_NE(pairs.key, first_key) << "values that have been there do not come again";
}

TEST(WriteSteadyPair, WhatStaysUnsteadyIsMissingAndWhatFailsIsNotTriedAgain) {
  PairSettings pairs;
  int taken = 0;
  BaselineTiming t;
  write_steady_pair(
      {}, pairs, [&] { return ++taken, unsteady_pair(); }, t);
  EXPECT_EQ(t.state, BaselineState::kMissing);
  EXPECT_NE(t.reason.find("unstable"), std::string::npos) << t.reason;
  EXPECT_EQ(taken, 2);
  taken = 0;
  const auto failed = [&] {
    ++taken;
    PairResult result;
    result.verdict = Verdict::kTimeout;
    return result;
  };
  write_steady_pair({}, pairs, failed, t);
  EXPECT_EQ(t.state, BaselineState::kMissing);
  EXPECT_EQ(taken, 1);
}

TEST(WritePair, AWrongAnswerIsAReasonAndNoNumber) {
  BaselineTiming t;
  PairResult pairs = pair_of(12000, 8000);
  pairs.verdict = Verdict::kWrongOutput;
  pairs.detail = "out[0]: 1 where 2 was expected";
  write_pair({}, pairs, 1, t);
  EXPECT_EQ(t.state, BaselineState::kMissing);
  EXPECT_EQ(t.reason, "wrong_output: out[0]: 1 where 2 was expected");
}

TEST(WritePair, BucketsThatDisagreeGiveNoNumber) {
  PairResult pairs = pair_of(12000, 8000);
  for (std::size_t i = 0; i < pairs.candidate_ns.size(); i += 10) pairs.candidate_ns[i] *= 5;
  BaselineTiming t;
  write_pair({}, pairs, 1, t);
  EXPECT_EQ(t.state, BaselineState::kMissing);
  EXPECT_EQ(t.reason.rfind("unstable: ", 0), 0u) << t.reason;
}

TEST(Divide, AScoreOverEagerBecomesOneOverTheBaseline) {
  Measurement m = over_eager(3, 0.003);
  divide(m, covered(1.5, 0.004));
  EXPECT_EQ(m.baseline, "cuda_graph");
  EXPECT_EQ(m.verdict, Verdict::kOk);
  EXPECT_NEAR(m.speedup, 2, 1e-12);
  EXPECT_NEAR(m.speedup_rounded, 2, 1e-12);
  EXPECT_NEAR(std::log(m.speedup_high / m.speedup), 0.005, 1e-12);
  EXPECT_NEAR(m.baseline_ns, 8000, 1e-9);
  EXPECT_NEAR(m.baseline_ns / m.candidate_ns, m.speedup, 1e-9);
  EXPECT_EQ(m.baseline_ratio, 1.5);
}

TEST(Divide, TheEarlierScoreIsOneOverTheBaselineToo) {
  Measurement m = over_eager(3, 0.003);
  m.speedup_before = 4.5;
  divide(m, covered(1.5, 0.004));
  EXPECT_NEAR(*m.speedup_before, 3, 1e-12);
  m.rounds = 0;  // the second time it was wrong
  m.speedup_before = 4.5;
  divide(m, covered(1.5, 0.004));
  EXPECT_NEAR(*m.speedup_before, 3, 1e-12);
  BaselineTiming lacking;
  lacking.state = BaselineState::kMissing;
  divide(m, lacking);
  EXPECT_FALSE(m.speedup_before);
}

TEST(Divide, TheRewardIsRoundedTowardOneAfterTheDivision) {
  Measurement m = over_eager(1.0, 0.001);
  divide(m, covered(1.5, 0.001));
  EXPECT_DOUBLE_EQ(m.speedup_rounded, 0.67);
  m = over_eager(1.5 * 1.239, 0.001);
  divide(m, covered(1.5, 0.001));
  EXPECT_DOUBLE_EQ(m.speedup_rounded, 1.23);
}

TEST(Divide, WithoutTheBaselineARightCandidateHasNoReward) {
  BaselineTiming lacking;
  lacking.name = "torch_compile";
  lacking.reason = "there is no python3 with torch";
  Measurement m = over_eager(3, 0.003);
  divide(m, lacking);
  EXPECT_EQ(m.verdict, Verdict::kNotMeasured);
  EXPECT_EQ(m.detail, "there is no baseline `torch_compile`: there is no python3 with torch");
  EXPECT_EQ(m.rounds, 0);
}

TEST(Divide, AWrongCandidateKeepsItsVerdict) {
  Measurement m;
  m.verdict = Verdict::kWrongOutput;
  m.detail = "out[0]";
  divide(m, {});
  EXPECT_EQ(m.verdict, Verdict::kWrongOutput);
  EXPECT_EQ(m.detail, "out[0]");
}

}  // namespace
}  // namespace warpsmith::measure

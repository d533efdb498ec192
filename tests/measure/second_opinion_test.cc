// What two measurements of a candidate in two processes come to, and what two clocks say of one row, on
// invented numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "gpu_place.h"
#include "timing/judge.h"

namespace warpsmith::measure {
namespace {

using ::testing::HasSubstr;

Measured measured(double speedup, const std::string& again = "") {
  Measured out;
  Measurement& m = out.measurement;
  m.verdict = Verdict::kOk;
  m.speedup = speedup;
  m.baseline_ns = 1000;
  m.baseline_alone_ns = 1000;
  m.candidate_ns = 1000 / speedup;
  m.rounds = 35;
  m.seconds = 2;
  m.gpu_held_s = 0.5;
  out.samples = {1000, static_cast<std::int64_t>(m.candidate_ns)};
  out.again = again;
  return out;
}

Measured beside(double pair_ns, double alone_ns) {
  Measured out = measured(2, kAgainForBaseline);
  out.measurement.verdict = Verdict::kUnstable;
  out.measurement.detail = "they differ";
  out.measurement.baseline_ns = pair_ns;
  out.measurement.baseline_alone_ns = alone_ns;
  return out;
}

TEST(SecondOpinion, OfTwoScoresTheLowerOneCounts) {
  for (const bool first_is_lower : {true, false}) {
    const Measured low = measured(4.0, first_is_lower ? kAgainForScore : ""),
                   high = measured(4.2, first_is_lower ? "" : kAgainForScore);
    const Measured out = first_is_lower ? second_opinion(low, high) : second_opinion(high, low);
    EXPECT_EQ(out.measurement.verdict, Verdict::kOk);
    EXPECT_EQ(out.measurement.speedup, 4.0);
    EXPECT_EQ(out.samples.back(), 250);
    EXPECT_EQ(out.measurement.speedup_before, first_is_lower ? 4.0 : 4.2);
    EXPECT_EQ(out.measurement.remeasured, 1);
    EXPECT_EQ(out.measurement.gpu_held_s, 1.0);
    EXPECT_EQ(out.measurement.seconds, 4);
    EXPECT_EQ(out.again, "");
  }
}

TEST(SecondOpinion, ScoresFarApartAreUnstable) {
  const Measured out = second_opinion(measured(9, kAgainForScore), measured(3, kAgainForScore));
  EXPECT_EQ(out.measurement.verdict, Verdict::kUnstable);
  EXPECT_THAT(out.measurement.detail, HasSubstr("9.00x, then 3.00x"));
  EXPECT_EQ(out.again, "");  // it looks too good the second time as well: that was expected
}

TEST(SecondOpinion, AFailureTheSecondTimeCounts) {
  Measured wrong;
  wrong.measurement.verdict = Verdict::kWrongOutput;
  const Measured out = second_opinion(measured(9, kAgainForScore), wrong);
  EXPECT_EQ(out.measurement.verdict, Verdict::kWrongOutput);
  EXPECT_EQ(out.measurement.speedup_before, 9);
}

TEST(SecondOpinion, ABaselineThatIsSlowedDownTwiceIsAHack) {
  const Measured out = second_opinion(beside(1100, 1000), beside(1080, 1000));
  EXPECT_EQ(out.measurement.verdict, Verdict::kHack);
  EXPECT_EQ(out.measurement.hack, "slowed_baseline");
  EXPECT_THAT(out.measurement.detail, HasSubstr("1100 ns and 1000 ns"));
}

TEST(SecondOpinion, ABaselineThatIsFasterBesideItIsNoHack) {
  EXPECT_EQ(second_opinion(beside(1100, 1000), beside(900, 1000)).measurement.verdict, Verdict::kUnstable);
  EXPECT_EQ(second_opinion(beside(900, 1000), beside(1100, 1000)).measurement.verdict, Verdict::kUnstable);
}

TEST(SecondOpinion, ABaselineThatAgreesTheSecondTimeIsBelieved) {
  const Measured out = second_opinion(beside(1100, 1000), measured(1.5));
  EXPECT_EQ(out.measurement.verdict, Verdict::kOk);
  EXPECT_EQ(out.measurement.speedup, 1.5);
  EXPECT_EQ(out.measurement.speedup_before, std::nullopt);
  EXPECT_EQ(out.again, "");
}

TEST(SecondOpinion, WhatLooksTooGoodTheSecondTimeTakesAThird) {
  const Measured second = second_opinion(beside(1100, 1000), measured(5, kAgainForScore));
  EXPECT_EQ(second.again, kAgainForScore);
  const Measured third = second_opinion(second, measured(4.9, kAgainForScore));
  EXPECT_EQ(third.measurement.verdict, Verdict::kOk);
  EXPECT_EQ(third.measurement.speedup, 4.9);
  EXPECT_EQ(third.measurement.remeasured, 2);
  EXPECT_EQ(third.again, "");
}

TEST(SecondOpinion, ABaselineThatIsDisturbedInTheRepetitionCostsNoScore) {
  const Measured second = second_opinion(measured(5, kAgainForScore), beside(1100, 1000));
  EXPECT_EQ(second.again, kAgainForScore);
  const Measured third = second_opinion(second, measured(4.9, kAgainForScore));
  EXPECT_EQ(third.measurement.verdict, Verdict::kOk);
  EXPECT_EQ(third.measurement.speedup, 4.9);
  EXPECT_EQ(third.measurement.speedup_before, 5);
  EXPECT_EQ(third.measurement.remeasured, 2);
  EXPECT_EQ(third.measurement.seconds, 6);
  EXPECT_EQ(third.again, "");
  // But one whose repetition fails twice has none.
  const Measured disturbed = second_opinion(second, beside(1100, 1000));
  EXPECT_EQ(disturbed.measurement.verdict, Verdict::kUnstable);
  EXPECT_EQ(disturbed.again, "");
}

TEST(TwoClocks, AgreeWithinTenPercentAndAWakeUp) {
  EXPECT_EQ(clocks_disagree(240e3, 260e3), "");
  EXPECT_EQ(clocks_disagree(5e3, 30e3), "");
  EXPECT_EQ(clocks_disagree(10e6, 10.9e6), "");
  EXPECT_THAT(clocks_disagree(240e3, 400e3), HasSubstr("240000 ns by CUDA's events and 400000 ns"));
  EXPECT_NE(clocks_disagree(400e3, 240e3), "");
  EXPECT_NE(clocks_disagree(0, 240e3), "");
}

TEST(SlowAllTheSame, ABaselineThatIsSlowedFlattersNobodyWhoIsSlowerThanIt) {
  Timing timing;
  timing.pair_ns = 1100;
  timing.alone_ns = 1000;
  timing.score.log_score = std::log(0.9);
  timing.score.half_width = 0.01;
  EXPECT_TRUE(slow_all_the_same(timing));
  timing.pair_ns = 1200;
  EXPECT_FALSE(slow_all_the_same(timing)) << "no cold processor does that";
  timing.pair_ns = 1100;
  timing.score.half_width = 0.2;
  EXPECT_FALSE(slow_all_the_same(timing)) << "its interval reaches above 1";
  timing.score = {};
  timing.score.log_score = std::log(1.05);
  EXPECT_FALSE(slow_all_the_same(timing));
  timing.score.log_score = std::log(0.5);
  std::swap(timing.pair_ns, timing.alone_ns);
  EXPECT_FALSE(slow_all_the_same(timing)) << "the time alone is the longer one: something else is wrong";
}

TEST(Bound, OfWhatIsMeasuredAgainIsOneOfTheReward) {
  Settings settings;
  Measurement m;
  m.task = "t";
  m.speedup = 2;  // over eager
  EXPECT_FALSE(looks_too_good(settings, m));
  settings.baseline_ratio["t"] = 0.5;  // the score's baseline is half as fast: the reward is 4
  EXPECT_TRUE(looks_too_good(settings, m));
  settings.baseline_ratio["t"] = 2;
  m.speedup = 5;
  EXPECT_FALSE(looks_too_good(settings, m));
}

TEST(Charge, LowersTheScoreAndNeverRaisesIt) {
  const Settings settings;
  PairResult pairs;
  pairs.baseline_ns.assign(35, 1000);
  pairs.candidate_ns.assign(35, 500);
  pairs.baseline_places.assign(35, 0);
  pairs.candidate_places.assign(35, 0);
  Timing timing = judge(settings, pairs, 10);
  timing.alone_ns = 990;
  charge(settings, -100, timing);
  charge(settings, 0.4, timing);
  EXPECT_NEAR(timing.score.speedup(), 2, 1e-9);
  charge(settings, 500, timing);
  EXPECT_NEAR(timing.score.speedup(), 1, 1e-9);
  EXPECT_EQ(timing.pairs.candidate_ns.front(), 1000);
  EXPECT_EQ(timing.alone_ns, 990);
  EXPECT_EQ(timing.calls, 10);
}

// What lacks memory on a GPU that shards share is tried again.
TEST(GpuPlace, WhoLacksMemorySaysSoInManyWords) {
  for (const char* words : {"cannot get 4295206144 bytes on the GPU: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
                            "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB.",
                            "AcceleratorError: CUDA error: out of memory",
                            "the reference fails: it does not fit on this GPU: it wants another 2.46 GiB"})
    EXPECT_TRUE(lacks_gpu_memory(words)) << words;
  EXPECT_FALSE(lacks_gpu_memory("unstable: the variance between buckets is 0.0073, over 0.005"));
}

}  // namespace
}  // namespace warpsmith::measure

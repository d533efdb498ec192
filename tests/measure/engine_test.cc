// What the engine makes of timings: which are taken again, which score counts, what is refused. Timings are
// invented.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "engine/alone.h"
#include "engine/engine.h"

namespace warpsmith::measure {
namespace {

using ::testing::HasSubstr;

class FakeDevice : public EngineDevice {
 public:
  double floor_ns(double) override { return floor; }
  void write_roofline(Measurement&) override {}
  double floor = 0;
};

// Gives the timings that it was told, one after the other.
class FakeContender : public Contender {
 public:
  Timing time(Measurement&) override { return next(); }
  Timing time_afresh(Measurement&) override {
    ++afresh;
    return next();
  }
  std::deque<Timing> timings;
  int afresh = 0;

 private:
  Timing next() {
    Timing timing = timings.at(0);
    timings.pop_front();
    return timing;
  }
};

Timing timing_of(const Settings& settings, double speedup, bool agrees = true) {
  PairResult pairs;
  for (int i = 0; i < settings.protocol.buckets * 5; ++i) {
    pairs.baseline_ns.push_back(1'000'000 + i % 3);
    pairs.candidate_ns.push_back(std::llround(1'000'000 / speedup) + i % 2);
    pairs.baseline_places.push_back(0);
    pairs.candidate_places.push_back(0);
  }
  Timing timing = judge(settings, pairs, 4);
  timing.pair_ns = agrees ? 1'000'000 : 1'500'000;
  timing.alone_ns = 1'000'000;
  timing.baseline_agrees = agrees;
  return timing;
}

Timing hack(bool beside_clock) {
  Timing timing = failed_timing({Verdict::kHack, "work behind the answer", 0});
  timing.hack = "late_work";
  timing.beside_clock = beside_clock;
  return timing;
}

class EngineTest : public ::testing::Test {
 protected:
  Measured measured(EngineRules rules) {
    Engine engine(settings_, settings_, device_, std::move(rules));
    Measured out;
    out.measurement.task = "task";
    engine.measure(contender_, out);
    return out;
  }
  static EngineRules again_here() { return {.most_timings = 3}; }

  Settings settings_;
  FakeDevice device_;
  FakeContender contender_;
};

TEST_F(EngineTest, AScoreIsKeptAsTheTasksBest) {
  contender_.timings = {timing_of(settings_, 2)};
  const Measured out = measured(again_here());
  EXPECT_EQ(out.measurement.verdict, Verdict::kOk);
  EXPECT_NEAR(out.measurement.speedup, 2, 1e-3);
  EXPECT_EQ(out.measurement.baseline_alone_ns, 1'000'000);
  EXPECT_NEAR(settings_.best["task"], 2, 1e-3);
  EXPECT_EQ(contender_.afresh, 0);
}

TEST_F(EngineTest, ABaselineThatDisagreesIsTimedAgain) {
  contender_.timings = {timing_of(settings_, 2, false), timing_of(settings_, 1.9)};
  const Measured out = measured(again_here());
  EXPECT_EQ(out.measurement.verdict, Verdict::kOk);
  EXPECT_NEAR(out.measurement.speedup, 1.9, 1e-3);
  EXPECT_EQ(out.measurement.remeasured, 1);
}

TEST_F(EngineTest, ABaselineThatNeverAgreesIsUnstable) {
  contender_.timings = {3, timing_of(settings_, 2, false)};
  const Measured out = measured(again_here());
  EXPECT_EQ(out.measurement.verdict, Verdict::kUnstable);
  EXPECT_THAT(out.measurement.detail, HasSubstr("1500000 ns beside the candidate and 1000000 ns alone"));
  EXPECT_EQ(out.measurement.remeasured, 2);
  EXPECT_TRUE(settings_.best.empty());
}

TEST_F(EngineTest, ASlowBaselineMayPassWhereTheCandidateIsSlower) {
  Timing slow = timing_of(settings_, 0.5, false);
  slow.pair_ns = 1.1 * slow.alone_ns;
  EngineRules rules = again_here();
  rules.slow_baseline_may_pass = true;
  contender_.timings = {slow};
  const Measured out = measured(rules);
  EXPECT_EQ(out.measurement.verdict, Verdict::kOk);
  EXPECT_TRUE(out.measurement.imprecise);
}

TEST_F(EngineTest, OfTwoScoresTheLowerOneCounts) {
  contender_.timings = {timing_of(settings_, 4), timing_of(settings_, 3.9)};
  const Measured out = measured(again_here());
  EXPECT_EQ(out.measurement.verdict, Verdict::kOk);
  EXPECT_NEAR(out.measurement.speedup, 3.9, 1e-3);
  EXPECT_NEAR(out.measurement.speedup_before.value_or(0), 4, 1e-3);
  EXPECT_EQ(out.measurement.remeasured, 1);
}

TEST_F(EngineTest, AScoreIsNotRepeatedBesideABaselineThatDisagrees) {
  contender_.timings = {timing_of(settings_, 4), timing_of(settings_, 3.9, false),
                        timing_of(settings_, 3.8, false), timing_of(settings_, 3.9, false)};
  const Measured out = measured(again_here());
  EXPECT_EQ(out.measurement.verdict, Verdict::kUnstable);
  EXPECT_EQ(out.measurement.remeasured, 3);
  EXPECT_NEAR(out.measurement.speedup_before.value_or(0), 4, 1e-3);
}

TEST_F(EngineTest, AFailureLeavesTheClockOfTheScoreBefore) {
  Timing first = timing_of(settings_, 4), failed = failed_timing({Verdict::kWrongOutput, "late", 0});
  first.clock_facts = {{"clock", "the host's"}, {"baseline_batch", "8"}};
  failed.clock_facts = {{"baseline_batch", "9"}};
  contender_.timings = {first, failed};
  const Measured out = measured(again_here());
  EXPECT_EQ(out.measurement.verdict, Verdict::kWrongOutput);
  EXPECT_EQ(out.measurement.clock, first.clock_facts);
}

TEST_F(EngineTest, ScoresFarApartAreUnstable) {
  contender_.timings = {timing_of(settings_, 8), timing_of(settings_, 3)};
  const Measured out = measured(again_here());
  EXPECT_EQ(out.measurement.verdict, Verdict::kUnstable);
  EXPECT_THAT(out.measurement.detail, HasSubstr("8.00x, then 3.00x"));
}

TEST_F(EngineTest, AScoreThatCannotBeRepeatedDoesNotCount) {
  contender_.timings = {timing_of(settings_, 8), failed_timing({Verdict::kCrash, "gone", 0})};
  const Measured out = measured(again_here());
  EXPECT_EQ(out.measurement.verdict, Verdict::kCrash);
}

TEST_F(EngineTest, WhatIsFoundBesideTheClockOnceMayBeTheMachines) {
  contender_.timings = {hack(true), timing_of(settings_, 1.5)};
  EXPECT_EQ(measured(again_here()).measurement.verdict, Verdict::kOk);
  contender_.timings = {hack(true), hack(true)};
  const Measured twice = measured(again_here());
  EXPECT_EQ(twice.measurement.verdict, Verdict::kHack);
  EXPECT_EQ(twice.measurement.hack, "late_work");
  EXPECT_EQ(twice.measurement.detail, "work behind the answer");
  contender_.timings = {hack(false)};
  EXPECT_EQ(measured(again_here()).measurement.verdict, Verdict::kHack) << "what is certain is not repeated";
}

TEST_F(EngineTest, WhereOthersRepeatItSaysWhy) {
  contender_.timings = {timing_of(settings_, 2, false)};
  Measured out = measured({});
  EXPECT_EQ(out.again, kAgainForBaseline);
  EXPECT_EQ(out.measurement.verdict, Verdict::kUnstable);
  contender_.timings = {timing_of(settings_, 4)};
  out = measured({});
  EXPECT_EQ(out.again, kAgainForScore);
  EXPECT_EQ(out.measurement.verdict, Verdict::kOk);
  EXPECT_EQ(contender_.afresh, 0);
}

TEST_F(EngineTest, FasterThanMemoryIsTooFast) {
  device_.floor = 2e6;
  contender_.timings = {timing_of(settings_, 2)};
  const Measured out = measured({.most_timings = 2, .compulsory = "move"});
  EXPECT_EQ(out.measurement.verdict, Verdict::kTooFast);
  EXPECT_THAT(out.measurement.detail, HasSubstr("the bytes that it must move take 2000000 ns"));
}

TEST_F(EngineTest, ClocksThatDisagreeAreUnstable) {
  Timing timing = timing_of(settings_, 2);
  timing.clocks = "the same calls took 1 ns and 2 ns";
  contender_.timings = {timing};
  EXPECT_EQ(measured({}).measurement.verdict, Verdict::kUnstable);
}

TEST(AloneTest, TimesAreTakenOnceAndAgainWhereTheyDisagree) {
  int taken = 0;
  Alone alone(1, [&](int calls, std::uint64_t) {
    ++taken;
    return std::vector<double>(21, taken == 1 ? 2e6 : 1e6 * calls / 4);
  });
  const Settings settings;
  Timing timing = timing_of(settings, 2);
  alone.compare_with(1.03, 4, timing);
  EXPECT_TRUE(timing.baseline_agrees);
  EXPECT_EQ(timing.alone_ns, 1e6);
  EXPECT_EQ(taken, 2) << "the first time was another moment's";
  alone.compare_with(1.03, 4, timing);
  EXPECT_EQ(taken, 2) << "kept";
  alone.forget();
  alone.compare_with(1.03, 4, timing);
  EXPECT_EQ(taken, 3);
}

}  // namespace
}  // namespace warpsmith::measure

// The protocol of paired rounds with arms and a clock of our own.
#include "warpsmith/measure/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "fake_arm.h"
#include "timing/judge.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {
namespace {

struct Bench {
  Clock clock;
  std::vector<char> order, renewals;
  FakeArm baseline, candidate;
  PairSettings settings;

  Bench(double baseline_ns, double candidate_ns, double noise)
      : baseline(clock, order, renewals, 'b', baseline_ns, noise, 1),
        candidate(clock, order, renewals, 'c', candidate_ns, noise, 2) {
    settings.calls = 4;
    settings.key = 17;
    settings.now = [this] { return clock.seconds; };
  }
  PairResult take() { return time_pairs(baseline, candidate, settings); }
  double speedup(const PairResult& result) const {
    return stats::score_of(stats::log_ratios(result.baseline_ns, result.candidate_ns), settings.protocol)
        .speedup();
  }
};

TEST(Pairs, OfASlowCandidateNoMoreThanThatIsLearnt) {
  Bench bench(1000, 4000, 0.003);
  bench.settings.protocol.give_up_below = 0.8;
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kOk);
  EXPECT_TRUE(result.gave_up);
  EXPECT_EQ(result.baseline_ns.size(), 7u);
  EXPECT_NEAR(bench.speedup(result), 0.25, 0.01);
}

TEST(Pairs, WhatArmsDrawHangsOnTheMeasurementsKey) {
  const auto begun = [](std::uint64_t key) {
    Bench bench(1000, 500, 0.003);
    bench.settings.key = key;
    bench.take();
    EXPECT_EQ(bench.baseline.begun.size(), 1u);
    EXPECT_EQ(bench.candidate.begun.size(), 1u);
    return std::pair(bench.baseline.begun.at(0), bench.candidate.begun.at(0));
  };
  EXPECT_EQ(begun(3), begun(3));
  EXPECT_NE(begun(3), begun(4));
  EXPECT_NE(begun(3).first, begun(3).second);
}

TEST(Pairs, OneThatIsGivenUpIsLookedAtInFull) {
  for (std::uint64_t key = 0; key < 100; ++key) {
    Bench bench(1000, 4000, 0.003);
    bench.settings.protocol.give_up_below = 0.8;
    bench.settings.key = key;
    EXPECT_EQ(bench.take().baseline_ns.size(), 7u);
    EXPECT_GE(bench.candidate.inspected.size(), 2u + 1u) << key;  // two of them while warming up
  }
  Bench wrong(1000, 4000, 0.003);
  wrong.settings.protocol.give_up_below = 0.8;
  wrong.candidate.wrong_from = 4;
  EXPECT_EQ(wrong.take().verdict, Verdict::kWrongOutput);
}

// One that scatters so that ±1 % would take thousands of rounds is not worth them.
TEST(Pairs, OfASlowAndNoisyOneNoMoreThanAFewLooks) {
  Bench bench(1000, 4000, 0.05);
  bench.settings.protocol.give_up_below = 0.8;
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kOk);
  EXPECT_TRUE(result.gave_up);
  EXPECT_EQ(result.baseline_ns.size(), 49u);
}

// As one that takes 0.1 s a call: the budget has room for 7 to 14 rounds, and these scatter by 2 %.
TEST(Pairs, OfASlowOneWhoseTimeIsUpNoMoreIsWanted) {
  Bench bench(300e3, 100e6, 0.02), wide(300e3, 100e6, 0.3), off(300e3, 100e6, 0.02);
  for (Bench* each : {&bench, &wide, &off}) each->settings.calls = 1;
  bench.settings.protocol.give_up_below = wide.settings.protocol.give_up_below = 0.8;
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kOk);
  EXPECT_TRUE(result.budget_ended);
  EXPECT_TRUE(result.gave_up);
  EXPECT_FALSE(wide.take().gave_up);  // wider than +-5 %
  EXPECT_FALSE(off.take().gave_up);
}

TEST(Pairs, RowsAreStoppedShortBehindCallsThatAreComparedInFull) {
  Bench bench(1000, 1000, 0.003), ahead(1000, 1000, 0.003), single(1000, 1000, 0.003);
  EXPECT_EQ(bench.take().verdict, Verdict::kOk);
  EXPECT_GE(bench.candidate.stopped, bench.settings.inspections);
  EXPECT_EQ(bench.baseline.stopped, 0);
  ahead.candidate.works_ahead = true;
  const PairResult result = ahead.take();
  EXPECT_EQ(result.verdict, Verdict::kOutOfBounds);
  EXPECT_EQ(result.detail, kWorkedAhead);
  single.settings.calls = 1;
  EXPECT_EQ(single.take().verdict, Verdict::kOk);
  EXPECT_EQ(single.candidate.stopped, 0);
}

// The first look is as close as ever; behind it a look comes in so many times as many rounds.
TEST(Pairs, LaterLooksCanBeFewer) {
  const auto looks = [](int fewer) {
    Bench bench(1000, 1000, 0.05);
    bench.settings.protocol.target = 1e-9;
    bench.settings.fewer_later = fewer;
    bench.settings.budget_s = 1000 * bench.settings.calls * 2 * 1000e-9;
    const std::size_t rounds = bench.take().baseline_ns.size();
    return std::pair(rounds, bench.candidate.inspected.size());
  };
  const auto [rounds, all] = looks(1);
  const auto [as_many, few] = looks(4);
  ASSERT_GT(rounds, 200u);
  EXPECT_NEAR(static_cast<double>(as_many), static_cast<double>(rounds), 14);
  const std::size_t first = 2 + 35 / 8 + 1;
  EXPECT_NEAR(static_cast<double>(few - first), static_cast<double>(all - first) / 4, 2);
}

// A fake arm says so where a run has not as many calls as its values were made for.
TEST(Pairs, BothSidesMayHaveRowsOfAsManyCallsAsTheirsNeed) {
  const auto with_rows = [](Bench& bench) {
    bench.settings.calls = 2;
    bench.settings.candidate_calls = 18;
    bench.settings.inspections = 35;
  };
  Bench bench(9000, 1000, 0.002), lazy(9000, 1000, 0.002);
  with_rows(bench);
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kOk);
  EXPECT_NEAR(stats::median(to_doubles(result.baseline_ns)), 9000, 20);
  EXPECT_NEAR(stats::median(to_doubles(result.candidate_ns)), 1000, 3);
  EXPECT_NEAR(bench.speedup(result), 9, 0.05);
  // Any of the candidate's calls is looked at, not only the first two.
  EXPECT_GT(*std::max_element(bench.candidate.inspected.begin(), bench.candidate.inspected.end()), 9);
  with_rows(lazy);
  lazy.settings.inspections = 0;
  lazy.candidate.lazy_at = 6;
  EXPECT_EQ(lazy.take().verdict, Verdict::kOk);
  EXPECT_EQ(lazy.candidate.inspected.back(), 17);
}

TEST(Pairs, NobodyElseIsGivenUp) {
  for (const double candidate_ns : {1100.0, 1240.0, 500.0}) {  // 0.91, 0.806: not surely below 0.8
    Bench bench(1000, candidate_ns, 0.01);
    bench.settings.protocol.give_up_below = 0.8;
    const PairResult result = bench.take();
    EXPECT_FALSE(result.gave_up) << candidate_ns;
    EXPECT_GE(result.baseline_ns.size(), 35u) << candidate_ns;
  }
  Bench off(1000, 4000, 0.01);
  EXPECT_FALSE(off.take().gave_up);
}

TEST(Pairs, ASlowCandidateWhoseTimesScatterIsNotGivenUp) {
  Bench bench(1000, 4000, 0.2);  // after seven rounds: wider than +-5 %
  bench.settings.protocol.give_up_below = 0.8;
  EXPECT_GT(bench.take().baseline_ns.size(), 7u);
}

TEST(Pairs, EveryMeasurementIsLookedAtInFull) {
  for (std::uint64_t key = 0; key < 300; ++key) {
    Bench bench(3000, 1500, 0.003);
    bench.settings.key = key;
    EXPECT_EQ(bench.take().baseline_ns.size(), 35u);
    EXPECT_GE(bench.candidate.inspected.size(), 2u + 4u) << key;  // two of them while warming up
    EXPECT_LE(bench.candidate.inspected.size(), 2u + 5u) << key;
  }
}

TEST(Pairs, QuietArmsStopAtTheMinimum) {
  Bench bench(3000, 1500, 0.003);
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kOk);
  EXPECT_EQ(result.baseline_ns.size(), 35u);
  EXPECT_EQ(result.candidate_ns.size(), 35u);
  EXPECT_FALSE(result.budget_ended);
  EXPECT_NEAR(bench.speedup(result), 2.0, 0.02);
}

TEST(Pairs, TimesAreOfOneCall) {
  Bench bench(3000, 1500, 1e-9);
  const PairResult result = bench.take();
  EXPECT_EQ(result.baseline_ns.front(), 3000);
  EXPECT_EQ(result.candidate_ns.front(), 1500);
}

TEST(Pairs, EachRoundRunsBothInRandomOrder) {
  Bench bench(1000, 1000, 0.003);
  bench.take();
  int baseline_first = 0, rounds = 0;
  for (std::size_t i = 0; i + 1 < bench.order.size(); i += 2, ++rounds) {
    ASSERT_NE(bench.order[i], bench.order[i + 1]);
    baseline_first += bench.order[i] == 'b';
  }
  EXPECT_GT(baseline_first, rounds / 5);
  EXPECT_LT(baseline_first, rounds * 4 / 5);
}

TEST(Pairs, ArmsNeverShareValues) {
  Bench bench(1000, 1000, 0.003);
  bench.take();
  for (const std::uint64_t key : bench.baseline.keys) EXPECT_FALSE(bench.candidate.keys.contains(key));
}

TEST(Pairs, NoiseTakesMoreRoundsUntilTheBudgetEnds) {
  Bench bench(100000, 100000, 0.3);
  bench.settings.budget_s = 0.5;  // some 600 rounds
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kOk);
  EXPECT_TRUE(result.budget_ended);
  EXPECT_GT(result.baseline_ns.size(), 300u);
  EXPECT_EQ(result.baseline_ns.size() % 7, 0u);
  EXPECT_EQ(result.candidate_ns.size(), result.baseline_ns.size());
  EXPECT_LT(bench.clock.seconds, 0.51);
}

TEST(Pairs, ASlowPairGetsOneRoundABucketAtLeast) {
  Bench bench(1e7, 1e8, 0.001);  // 0.44 s a round, 0.88 s of warming up
  bench.settings.budget_s = 2;
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kOk);
  EXPECT_EQ(result.baseline_ns.size(), 7u);
  EXPECT_TRUE(result.budget_ended);
}

TEST(Pairs, OneWhoseBudgetEndsEarlyIsLookedAtInFull) {
  for (std::uint64_t key = 0; key < 50; ++key) {
    Bench bench(1e7, 1e8, 0.001);
    bench.settings.budget_s = 2;
    bench.settings.key = key;
    EXPECT_EQ(bench.take().baseline_ns.size(), 7u);
    EXPECT_GE(bench.candidate.inspected.size(), 2u + 1u) << key;  // two of them while warming up
  }
}

TEST(Pairs, WhatIsTooSlowForThatIsATimeout) {
  Bench bench(1e7, 1e9, 0.001);
  bench.settings.budget_s = 2;
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kTimeout);
  EXPECT_TRUE(result.baseline_ns.empty());
}

TEST(Pairs, AFailureInAnyRoundIsTheVerdict) {
  Bench bench(1000, 1000, 0.003);
  bench.candidate.fail_at = 20;
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kCrash);
  EXPECT_EQ(result.detail, "died");
  EXPECT_EQ(bench.candidate.runs, 20);
}

TEST(Pairs, SomeTimedCallsAreInspected) {
  Bench bench(1000, 1000, 0.003);
  bench.take();
  EXPECT_GE(bench.candidate.inspected.size(), 3u);  // two of them while warming up
  EXPECT_LE(bench.candidate.inspected.size(), 16u);
  EXPECT_TRUE(bench.baseline.inspected.empty());
}

TEST(Pairs, ACandidateThatTurnsWrongIsFoundInALongMeasurement) {
  Bench bench(100000, 100000, 0.3);
  bench.candidate.wrong_from = 40;  // right in all that the first look sees
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kWrongOutput);
}

TEST(Pairs, ACallThatWroteNothingIsLookedAt) {
  Bench bench(1000, 1000, 0.003);
  bench.settings.inspections = 0;
  bench.candidate.lazy_at = bench.candidate.wrong_from = 12;
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kWrongOutput);
  EXPECT_EQ(bench.candidate.inspected.back(), bench.settings.calls - 1);
}

// A round takes 4 x (1 + 1) us of the bench's clock; a look comes every 5 rounds.
struct Disturbances {
  explicit Disturbances(Bench& the_bench) : bench(the_bench) {
    bench.settings.look_every_s = 5 * 8e-6 - 1e-9;
    bench.settings.disturbed = [this] {
      rounds_at.push_back(bench.candidate.runs - 2);
      const std::size_t look = rounds_at.size() - 1;
      return always || bad_looks.contains(look);
    };
  }
  Bench& bench;
  std::set<std::size_t> bad_looks;
  bool always = false;
  std::vector<int> rounds_at;  // by look, without the two that warm up
};

TEST(Disturbed, QuietDevicesLoseNothing) {
  Bench bench(1000, 1000, 1e-9);
  const Disturbances disturbances(bench);
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kOk);
  EXPECT_EQ(result.candidate_ns.size(), 35u);
  EXPECT_EQ(result.rounds_thrown_away, 0);
  EXPECT_EQ(bench.candidate.runs, 37);
  EXPECT_EQ(disturbances.rounds_at, (std::vector<int>{0, 5, 10, 15, 20, 25, 30, 35, 35}))
      << "before the first, every 5 rounds, and before they count";
}

TEST(Disturbed, RoundsOnBothSidesOfABadLookAreTakenAgain) {
  Bench bench(1000, 1000, 1e-9);
  Disturbances disturbances(bench);
  disturbances.bad_looks = {3};
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kOk);
  EXPECT_EQ(result.rounds_thrown_away, 10) << "10 to 15 ended in it, 15 to 20 began in it";
  EXPECT_EQ(result.candidate_ns.size(), 35u);
  EXPECT_EQ(result.baseline_ns.size(), 35u);
  EXPECT_EQ(bench.candidate.runs, 47) << "each round has values of its own: FakeArm looks at that";
}

TEST(Disturbed, WhatBeganDisturbedIsThrownAway) {
  Bench bench(1000, 1000, 1e-9);
  Disturbances disturbances(bench);
  disturbances.bad_looks = {0};
  EXPECT_EQ(bench.take().rounds_thrown_away, 5);
}

TEST(Disturbed, TheLastRoundsDoNotCountBeforeALook) {
  Bench bench(1000, 1000, 1e-9);
  Disturbances disturbances(bench);
  bench.settings.look_every_s = 1e9;
  disturbances.bad_looks = {1};
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kOk);
  // The second look, at the end, throws all away; so does the third, whose rounds began in it.
  EXPECT_EQ(result.rounds_thrown_away, 70);
  EXPECT_EQ(result.candidate_ns.size(), 35u);
  EXPECT_EQ(disturbances.rounds_at, (std::vector<int>{0, 35, 70, 105}));
}

// What is left is a number of rounds that no buckets divide.
TEST(Disturbed, WhatIsLeftIsFilledUpToWholeBuckets) {
  for (const int every : {2, 3, 8, 11, 12}) {
    Bench bench(1000, 1000, 1e-9);
    Disturbances disturbances(bench);
    bench.settings.look_every_s = every * 8e-6 - 1e-9;
    const std::size_t last = (34 + static_cast<std::size_t>(every)) / static_cast<std::size_t>(every);
    disturbances.bad_looks = {35 % every == 0 ? last + 1 : last};
    const PairResult result = bench.take();
    EXPECT_EQ(result.verdict, Verdict::kOk);
    EXPECT_GT(result.rounds_thrown_away, 0) << every;
    EXPECT_EQ(result.candidate_ns.size(), 35u) << every;
  }
}

TEST(Disturbed, TheBudgetEndsADisturbanceThatDoesNot) {
  Bench bench(1000, 1000, 1e-9);
  Disturbances disturbances(bench);
  disturbances.always = true;
  bench.settings.budget_s = 0.001;
  const PairResult result = bench.take();
  EXPECT_EQ(result.verdict, Verdict::kNotMeasured) << "the candidate is not to blame";
  EXPECT_NE(result.detail.find("rounds were thrown away"), std::string::npos) << result.detail;
  EXPECT_TRUE(result.candidate_ns.empty());
  EXPECT_GT(result.rounds_thrown_away, 300);
  EXPECT_LT(bench.clock.seconds, 0.0032);
}

TEST(Disturbed, AFailureInSuchARoundIsAVerdictAllTheSame) {
  Bench bench(1000, 1000, 1e-9);
  Disturbances disturbances(bench);
  disturbances.always = true;
  bench.candidate.wrong_from = 12;
  bench.candidate.lazy_at = 12;
  EXPECT_EQ(bench.take().verdict, Verdict::kWrongOutput);
}

TEST(Alone, WarmsUpAndCountsByTheCall) {
  Bench bench(2000, 1, 1e-9);
  EXPECT_EQ(time_alone(bench.baseline, 4, 5, 1), (std::vector<double>(5, 2000.0)));
  EXPECT_EQ(bench.baseline.runs, 6);
}

// Within the measurement the machine becomes slower by half.
TEST(Turns, AMachineThatGrowsSlowerDoesSoForBoth) {
  Bench bench(1000, 2000, 0.01);
  bench.baseline.slower = [&] { return 1 + 500 * bench.clock.seconds; };
  const double before = stats::median(time_alone(bench.baseline, 4, 15, 3));
  const Turns turns = time_in_turns(bench.baseline, bench.candidate, {4, 4}, 9, 5, 1);
  EXPECT_EQ(turns.failed.verdict, Verdict::kOk);
  EXPECT_EQ(turns.alone_ns.size(), 9u);
  EXPECT_GT(stats::median(turns.beside_ns) / before, 1.2);
  const double now = stats::median(turns.beside_ns) / stats::median(turns.others_ns);
  EXPECT_TRUE(turns_agree(turns, now, 1.03));
  EXPECT_FALSE(turns_agree(turns, 1.2 * now, 1.03)) << "a score that the turns do not give";
}

TEST(Turns, ABaselineThatIsSlowerBesideTheCandidateIsFound) {
  Bench bench(1000, 2000, 0.01);
  bench.baseline.slower = [&] {
    const bool beside = bench.order.size() > 1 && bench.order[bench.order.size() - 2] == 'c';
    return (beside ? 1.1 : 1.0) * (1 + 500 * bench.clock.seconds);
  };
  EXPECT_FALSE(turns_agree(time_in_turns(bench.baseline, bench.candidate, {4, 4}, 9, 6, 1), 0.1, 1.03));
  EXPECT_TRUE(turns_agree(time_in_turns(bench.baseline, bench.candidate, {4, 4}, 9, 6, 2), 0.1, 1.15));
}

TEST(Turns, OneThatFailsEndsThem) {
  Bench bench(1000, 2000, 0.01);
  bench.candidate.fail_at = 12;
  const Turns turns = time_in_turns(bench.baseline, bench.candidate, {4, 4}, 9, 5, 1);
  EXPECT_EQ(turns.failed.verdict, Verdict::kCrash);
  EXPECT_EQ(turns.beside_ns.size(), 1u);
  EXPECT_EQ(bench.candidate.runs, 12);
}

}  // namespace
}  // namespace warpsmith::measure

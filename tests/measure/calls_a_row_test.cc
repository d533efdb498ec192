// How many calls make a row: by arms of our own.
#include "timing/calls_a_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "fake_arm.h"

namespace warpsmith::measure {
namespace {

TEST(CallsARow, TakeNearestToTheRow) {
  EXPECT_EQ(gpu_calls_a_row(10e3, 0, 160e3), 16);
  EXPECT_EQ(gpu_calls_a_row(157e3, 0, 160e3), 1);
  EXPECT_EQ(gpu_calls_a_row(110e3, 0, 160e3), 1);
  EXPECT_EQ(gpu_calls_a_row(100e3, 0, 160e3), 2);
  EXPECT_EQ(gpu_calls_a_row(50e6, 0, 160e3), 1);
  EXPECT_EQ(gpu_calls_a_row(0, 0, 160e3), kMostCallsARow);
  EXPECT_EQ(gpu_calls_a_row(10e3, 0, 160e3, 7), 7);
  EXPECT_EQ(gpu_calls_a_row(10e3, 0, 160e3, 0), 1);
}

TEST(CallsARow, FitIntoTheQueue) {
  EXPECT_EQ(gpu_calls_a_row(10e3, kLongestRowNs / 5.5, 160e3), 5);
  EXPECT_EQ(gpu_calls_a_row(10e3, 3 * kLongestRowNs, 160e3), 1);
}

TEST(CallsARow, AreWithinHalfACallOfTheRow) {
  for (double call = 2.6e3; call < 2e6; call *= 1.07) {
    const int calls = gpu_calls_a_row(call, 0);
    EXPECT_LE(std::abs(calls * call - kRowNs), std::max(call / 2, call - kRowNs)) << call;
  }
}

// A row of `more_ns` beside its calls, enqueued at `enqueue_ns` a call; `held_up`: rows whose enqueueing
// takes 10 ms.
struct Rows {
  Clock clock;
  std::vector<char> order, renewals;
  FakeArm arm;
  double enqueue_call_ns = 3e3;
  std::set<int> held_up;

  explicit Rows(double call_ns) : arm(clock, order, renewals, 'c', call_ns, 0.01, 3) {}
  RowEstimate estimate(double row_ns = kRowNs, int most = kMostCallsARow) {
    return estimate_row(
        arm,
        [&] {
          return held_up.contains(arm.runs) ? 10e6 : enqueue_call_ns * static_cast<double>(arm.last_calls);
        },
        row_ns, most, 11);
  }
};

TEST(CallsARow, AreEstimatedByRowsOfSeveral) {
  Rows rows(5e3);
  const RowEstimate estimate = rows.estimate();
  EXPECT_EQ(estimate.failed.verdict, Verdict::kOk);
  EXPECT_NEAR(estimate.call_ns, 5e3, 100);
  EXPECT_NEAR(estimate.calls, 32, 1);
  EXPECT_NEAR(estimate.enqueue_ns, 3e3, 1);
  EXPECT_GT(rows.arm.last_calls, 1);
}

TEST(CallsARow, OfASlowProgramOneRowOfOneIsEnough) {
  Rows rows(30e6);
  EXPECT_EQ(rows.estimate().calls, 1);
  EXPECT_EQ(rows.arm.runs, 3);
}

// A host that stops for a moment says nothing of how long enqueueing takes.
TEST(CallsARow, AHostThatWasHeldUpDoesNotShortenThem) {
  Rows rows(5e3);
  for (const int run : {1, 2, 4, 6}) rows.held_up.insert(run);
  EXPECT_NEAR(rows.estimate().calls, 32, 1);
}

TEST(CallsARow, ARowThatWasDisturbedDoesNotShortenThem) {
  Rows rows(5e3);
  rows.arm.slower = [&] { return rows.arm.runs == 2 || rows.arm.runs == 5 ? 20.0 : 1.0; };
  EXPECT_NEAR(rows.estimate().calls, 32, 1);
}

TEST(CallsARow, WhoFailsInOneHasFailed) {
  Rows rows(5e3);
  rows.arm.fail_at = 5;
  EXPECT_EQ(rows.estimate().failed.verdict, Verdict::kCrash);
}

// Idle while its rows are chosen, it would get rows of as many calls as there may be.
TEST(CallsARow, WhoWritesNothingInOneIsLookedAt) {
  std::size_t inspected = 0;
  for (int run = 1; run <= 6; ++run) {
    Rows rows(5e3);
    rows.arm.lazy_at = run;
    rows.estimate();
    inspected += rows.arm.inspected.size();
  }
  EXPECT_EQ(inspected, 4 * 3 + 2 * 2);  // one row of three is looked at in any case
  Rows wrong(5e3);
  wrong.arm.wrong_from = 1;
  EXPECT_EQ(wrong.estimate().failed.verdict, Verdict::kWrongOutput);
  Rows wrong_later(5e3);
  wrong_later.arm.wrong_from = 4;
  EXPECT_EQ(wrong_later.estimate().failed.verdict, Verdict::kWrongOutput);
}

// Baseline, candidate: nanoseconds and bounds of calls.
TEST(CallsARow, RowsOfTwoSidesAreEquallyLong) {
  const auto calls = [](double own_ns, CallsRange own, double others_ns, CallsRange others) {
    const RowCalls equal = equal_rows(own_ns, own, others_ns, others);
    return std::pair(equal.own, equal.others);
  };
  EXPECT_EQ(calls(50e3, {80, 80}, 50.1e3, {2, 2048}), std::pair(80, 80));
  EXPECT_EQ(calls(50e3, {80, 80}, 25e3, {2, 2048}), std::pair(80, 160));
  EXPECT_EQ(calls(50e3, {80, 80}, 25e3, {2, 100}), std::pair(80, 100));
  EXPECT_EQ(calls(3e6, {2, 4}, 3.01e6, {2, 2048}), std::pair(2, 2));
  EXPECT_EQ(calls(3e6, {2, 4}, 6e6, {2, 2048}), std::pair(4, 2)) << "its two calls are as long as four";
  EXPECT_EQ(calls(3e6, {2, 4}, 4.5e6, {2, 2048}), std::pair(3, 2));
  EXPECT_EQ(calls(3e6, {2, 2}, 6e6, {2, 2048}), std::pair(2, 2));
  EXPECT_EQ(calls(50e6, {1, 1}, 400e6, {1, 2048}), std::pair(1, 1));
  EXPECT_EQ(calls(0, {1, 4}, 0, {1, 8}), std::pair(1, 1));
}

// A row takes 0.3 ms beside its calls. With one try, counts that began wrongly end so, and equal programs
// score 1.05.
TEST(CallsARow, RowsBecomeAlikeByAndByAndTheirRatioIsThatOfTheCalls) {
  constexpr double kBeginning = 0.3e6;
  constexpr CallsRange kOwn{370, 370}, kOthers{2, 2048};
  struct Row {
    double own_ns, others_ns;
    int begun;
  };
  for (const Row& row : {Row{10e3, 10e3, 370},
                         {10e3, 10e3, 40},
                         {10e3, 10e3, 1500},
                         {10e3, 20e3, 370},
                         {10e3, 5e3, 370},
                         {10e3, 40e3, 370},
                         {10e3, 9e3, 370}}) {
    RowCalls now{kOwn.least, row.begun};
    const auto a_call = [&](double ns, int calls) { return ns + kBeginning / calls; };
    for (int tries = 0; tries < 3; ++tries) {
      const std::optional<RowCalls> next =
          other_calls(now, a_call(row.own_ns, now.own), kOwn, a_call(row.others_ns, now.others), kOthers);
      if (!next) break;
      now = *next;
    }
    const double score = a_call(row.own_ns, now.own) / a_call(row.others_ns, now.others);
    EXPECT_NEAR(score / (row.own_ns / row.others_ns), 1, 0.01)
        << row.own_ns << " and " << row.others_ns << " from " << row.begun << ": " << now.others;
    if (row.own_ns == row.others_ns && row.begun == kOwn.least) {
      EXPECT_EQ(now.others, now.own);
    }
  }
  EXPECT_FALSE(other_calls({2, 1}, 3e6, {2, 2}, 9e6, {1, 1})) << "there are no others";
}

}  // namespace
}  // namespace warpsmith::measure

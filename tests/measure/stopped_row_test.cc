#include "extension/stopped_row.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace warpsmith::measure {
namespace {

// What calls may have: results (`w`), nothing, or a right answer that is what unwritten memory holds.
constexpr char kNothing = '.', kLooksUnwritten = '-';
constexpr char kUnwritten[] = {kNothing, kLooksUnwritten, '\0'};

struct Fake {
  std::string calls;  // of the row
  Ran bad;            // what a look finds
  std::vector<int> compared;
  StoppedRow row() {
    return {static_cast<int>(calls.size()),
            [this](int begin, std::optional<int>* call) {
              const std::size_t found = calls.find_first_of(kUnwritten, static_cast<std::size_t>(begin));
              if (found != std::string::npos) *call = static_cast<int>(found);
              return bad;
            },
            [this](int call) {
              compared.push_back(call);
              return calls[static_cast<std::size_t>(call)] == kNothing ? Ran{Verdict::kWrongOutput, "", 0}
                                                                       : Ran{};
            }};
  }
};

int written_of(const std::string& calls, int said) {
  Fake fake{calls, {}, {}};
  int written = -1;
  EXPECT_EQ(count_written(fake.row(), said, &written).verdict, Verdict::kOk);
  return written;
}

// `returned`: the last one that was begun, too.
OutOfStep step_of(const std::string& calls, int said, bool returned = false) {
  return out_of_step(written_of(calls, said), said, returned ? said : said - 1);
}

TEST(StoppedRow, HonestOnesAreInStep) {
  for (const int said : {0, 1}) EXPECT_EQ(step_of("......", said), OutOfStep::kNo) << said;
  for (const int said : {3, 4}) EXPECT_EQ(step_of("www...", said), OutOfStep::kNo) << said;
  EXPECT_EQ(step_of("wwwwww", 6), OutOfStep::kNo);
  EXPECT_EQ(step_of("wwwww.", 6), OutOfStep::kNo);
}

TEST(StoppedRow, WorkOfCallsToComeIsSeen) {
  EXPECT_EQ(step_of("wwwwww", 1), OutOfStep::kAhead);
  EXPECT_EQ(step_of("ww....", 1), OutOfStep::kAhead);
  EXPECT_EQ(step_of("w.....", 0), OutOfStep::kAhead);
}

TEST(StoppedRow, WorkThatIsPutOffIsSeen) {
  EXPECT_EQ(step_of("......", 2), OutOfStep::kBehind);
  EXPECT_EQ(step_of("ww....", 4), OutOfStep::kBehind);
  EXPECT_EQ(step_of(".wwwww", 6), OutOfStep::kBehind);
  EXPECT_EQ(step_of("wwww..", 5), OutOfStep::kNo);
  EXPECT_EQ(step_of("wwww..", 5, true), OutOfStep::kBehind);
  EXPECT_EQ(step_of("wwww..", 4, true), OutOfStep::kNo);
}

TEST(StoppedRow, AnAnswerThatLooksUnwrittenCountsWhereItsCallWasBegun) {
  EXPECT_EQ(written_of("w-w...", 3), 3);
  EXPECT_EQ(written_of("w-w...", 4), 3);
  EXPECT_EQ(written_of("------", 6), 6);
  EXPECT_EQ(written_of("wwwww-", 6), 6);
  // What has not been begun is unwritten, though it would be right.
  for (const int said : {0, 1, 3}) EXPECT_EQ(step_of("------", said), OutOfStep::kNo) << said;
  EXPECT_EQ(step_of("w-----", 2), OutOfStep::kNo);
}

// No more than some are compared.
TEST(StoppedRow, WhereManyLookUnwrittenItIsBelieved) {
  const std::string calls(40, kLooksUnwritten);
  Fake fake{calls, {}, {}};
  int written = -1;
  EXPECT_EQ(count_written(fake.row(), 30, &written).verdict, Verdict::kOk);
  EXPECT_EQ(written, 30);
  EXPECT_LE(fake.compared.size(), 4u);
}

TEST(StoppedRow, WhatALookFindsEndsIt) {
  Fake fake{"ww..", {Verdict::kOutOfBounds, "writes before `w`", 0}, {}};
  int written = -1;
  EXPECT_EQ(count_written(fake.row(), 2, &written).detail, "writes before `w`");
  EXPECT_TRUE(fake.compared.empty());
}

}  // namespace
}  // namespace warpsmith::measure

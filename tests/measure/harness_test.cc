// The harness's own kernels, made without a GPU.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/context.h"
#include "gpu/harness.h"
#include "probe/fingerprint.h"
#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/measure/harness_cubin.h"

namespace warpsmith::measure {
namespace {

TEST(HarnessKernels, AreMadeForEveryGeneration) {
  const Scratch scratch;
  for (const char* target : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120"}) {
    const std::vector<std::byte> cubin = harness_cubin(target, scratch.path(), true);
    ASSERT_GT(cubin.size(), 4u) << target;
    EXPECT_EQ(std::to_integer<int>(cubin[0]), 0x7f) << target;
    EXPECT_EQ(std::to_integer<char>(cubin[1]), 'E') << target;
  }
  EXPECT_THROW(harness_cubin("sm_1", scratch.path(), true), Error);
}

TEST(Fingerprint, TheEdgeOfL2IsWhereReadingAgainGetsSlow) {
  EXPECT_EQ(edge_of({{10, 2e12}, {20, 5e12}, {30, 5.1e12}, {40, 4.9e12}, {50, 3e12}, {60, 2e12}}), 40);
  EXPECT_EQ(edge_of({{10, 5e12}, {20, 2e12}}), 10);
  EXPECT_EQ(edge_of({{10, 2.1e12}, {20, 2e12}}), 0) << "no edge is seen";
  EXPECT_EQ(edge_of({{10, 5e12}}), 0);
  EXPECT_EQ(edge_of({}), 0);
}

TEST(Operands, LieInWindowsInAnOrderOfTheirOwn) {
  Random random(7);
  const std::vector<int> order = shuffled_in_windows(150, 64, random);
  ASSERT_EQ(order.size(), 150u);
  int in_place = 0;
  for (int begin = 0; begin < 150; begin += 64) {
    const int end = std::min(150, begin + 64);
    std::vector<int> window(order.begin() + begin, order.begin() + end);
    for (int i = begin; i < end; ++i) in_place += order[static_cast<std::size_t>(i)] == i ? 1 : 0;
    std::sort(window.begin(), window.end());
    for (int i = begin; i < end; ++i) EXPECT_EQ(window[static_cast<std::size_t>(i - begin)], i);
  }
  EXPECT_LT(in_place, 20);
  EXPECT_NE(shuffled_in_windows(150, 64, random), order);
  EXPECT_TRUE(shuffled_in_windows(0, 64, random).empty());
  EXPECT_EQ(shuffled_in_windows(1, 64, random), std::vector<int>{0});
}

TEST(LaunchCost, QuickIsKnownOfManyContextsOrOfSomeThatAreAlike) {
  bool known = true;
  EXPECT_DOUBLE_EQ(quick_cost({}, 1300, &known), 0);
  EXPECT_FALSE(known);
  std::vector<double> seen(11, 1300);
  EXPECT_NEAR(quick_cost(seen, 1300, &known), 1306.5, 0.1);
  EXPECT_FALSE(known);
  seen.push_back(1306);
  quick_cost(seen, 1306, &known);
  EXPECT_TRUE(known);
  seen.push_back(1404);  // not all are
  quick_cost(seen, 1404, &known);
  EXPECT_FALSE(known);
  seen = std::vector<double>(44, 1404);
  seen.insert(seen.end(), {1289, 1150, 1291, 1290});  // one is out of place
  EXPECT_NEAR(quick_cost(seen, 1404, &known), 1296.5, 0.1);
  EXPECT_TRUE(known);
}

TEST(LaunchCost, WhatWasSeenUnderAToolDoesNotCount) {
  bool known = true;
  std::vector<double> seen(100, 15'000);  // what compute-sanitizer makes of it
  seen.push_back(1378);
  EXPECT_NEAR(quick_cost(seen, 1378, &known), 1384.9, 0.1);
  EXPECT_FALSE(known);
  seen.insert(seen.end(), 48, 1300);
  EXPECT_NEAR(quick_cost(seen, 1378, &known), 1306.5, 0.1);
  EXPECT_TRUE(known);
  quick_cost(seen, 15'000, &known);
  EXPECT_TRUE(known);
}

}  // namespace
}  // namespace warpsmith::measure

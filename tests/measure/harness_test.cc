// The harness's own kernels, made without a GPU.
#include <gtest/gtest.h>

#include "gpu/context.h"
#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/measure/gpu.h"

namespace warpsmith::measure {
namespace {

TEST(HarnessKernels, AreMadeForEveryGeneration) {
  const Scratch scratch;
  for (const char* target : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120"}) {
    const std::vector<std::byte> cubin = harness_cubin(target, scratch.path(), true);
    ASSERT_GT(cubin.size(), 4u) << target;
    EXPECT_EQ(std::to_integer<int>(cubin[0]), 0x7f) << target;
    EXPECT_EQ(std::to_integer<char>(cubin[1]), 'E') << target;
  }
  EXPECT_THROW(harness_cubin("sm_1", scratch.path(), true), Error);
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

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
  EXPECT_DOUBLE_EQ(quick_cost({}, &known), 0);
  EXPECT_FALSE(known);
  std::vector<double> seen(11, 1300);
  EXPECT_NEAR(quick_cost(seen, &known), 1306.5, 0.1);
  EXPECT_FALSE(known);
  seen.push_back(1306);
  quick_cost(seen, &known);
  EXPECT_TRUE(known);
  seen.push_back(1404);  // not all are
  quick_cost(seen, &known);
  EXPECT_FALSE(known);
  seen = std::vector<double>(44, 1404);
  seen.insert(seen.end(), {1289, 700, 1291, 1290});  // one is out of place
  EXPECT_NEAR(quick_cost(seen, &known), 1296.5, 0.1);
  EXPECT_TRUE(known);
}

}  // namespace
}  // namespace warpsmith::measure

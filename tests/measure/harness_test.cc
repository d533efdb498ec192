// The harness's own kernels, made without a GPU.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace warpsmith::measure

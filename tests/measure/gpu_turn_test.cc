// A process's turn at a GPU.
#include "gpu/turn.h"

#include <gtest/gtest.h>

#include "scratch.h"
#include "warpsmith/base/error.h"

namespace warpsmith::measure {
namespace {

TEST(GpuTurn, OthersHaveTheGpuWhileItIsLeft) {
  const Scratch scratch;
  const fs::path lock = scratch / "gpu.lock";
  const auto is_free = [&] { return FileLock::try_lock(lock).has_value(); };
  {
    GpuTurn turn(lock);
    EXPECT_FALSE(is_free());
    bool was_free = false;
    double held_s = -1;
    turn.without([&] {
      was_free = is_free();
      held_s = turn.held_s();
      const double until = seconds_now() + 0.05;
      while (seconds_now() < until) {
      }
      EXPECT_EQ(turn.held_s(), held_s) << "this time is not its own";
    });
    EXPECT_TRUE(was_free);
    EXPECT_FALSE(is_free());
    EXPECT_LT(turn.held_s(), held_s + 0.05);
    EXPECT_THROW(turn.without([] { throw Error("no child"); }), Error);
    EXPECT_FALSE(is_free()) << "it goes on as if it had the GPU";
  }
  EXPECT_TRUE(is_free());
}

}  // namespace
}  // namespace warpsmith::measure

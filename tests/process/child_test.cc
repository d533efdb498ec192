#include "warpsmith/process/child.h"
#include <gtest/gtest.h>
namespace warpsmith::process {
namespace {
TEST(Child, Runs) {
  auto r = run_child({.argv = {"/bin/echo", "hi"}});
  EXPECT_EQ(r.ending, Ending::kExited) << r.problem;
  EXPECT_EQ(r.out, "hi\n");
}
TEST(Child, Bwrap) {
  EXPECT_EQ(try_sandbox(SandboxLevel::kBubblewrap).problem, "");
  EXPECT_EQ(try_sandbox(SandboxLevel::kLandlock).problem, "");
}
}  // namespace
}  // namespace warpsmith::process

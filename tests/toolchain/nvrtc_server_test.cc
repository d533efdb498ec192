// Candidates share one child that has NVRTC loaded: what one of them does to it, the others do not notice.
// With an NVRTC of ours (fake_nvrtc.cc), which does as a source says.
#include <gtest/gtest.h>
#include <unistd.h>

#include "copy_task.h"
#include "warpsmith/base/files.h"
#include "warpsmith/toolchain/host.h"

namespace warpsmith::toolchain {
namespace {

class NvrtcServer : public ::testing::Test {
 protected:
  // Before it is looked for, which is done once a process.
  static void SetUpTestSuite() { ::setenv("WARPSMITH_NVRTC", WARPSMITH_FAKE_NVRTC, 1); }

  void SetUp() override {
    options_.cache =
        fs::temp_directory_path() / ("warpsmith-nvrtc-server-test-" + std::to_string(::getpid()));
    options_.timeout_s = 5;
    fs::remove_all(options_.cache);
    ASSERT_EQ(nvrtc_of_twin().why_none, "");
  }
  void TearDown() override { fs::remove_all(options_.cache); }

  CompileResult compile(HostToolchain& toolchain, const std::string& name) {
    return toolchain.compile(
        make_plan_candidate("t",
                            "// plan: launch k<<<1, 32>>>(x, out, N)\n"
                            "__global__ void k(const float* x, float* out, int N) { int " +
                                name + " = N; out[0] = x[0] * " + name + "; }\n",
                            {}),
        task_);
  }

  void expect_right_answers(HostToolchain& toolchain, const std::string& after) {
    const CompileResult good = compile(toolchain, "good_after_" + after.substr(3));
    EXPECT_EQ(good.verdict, Verdict::kOk) << after << "\n" << good.log;
    EXPECT_FALSE(good.over_limit) << after;
    const CompileResult wrong = compile(toolchain, "is_wrong_after_" + after.substr(3));
    EXPECT_EQ(wrong.verdict, Verdict::kCompileError) << after;
    EXPECT_EQ(wrong.log, "kernel.cu:2:1: error: is_wrong\n") << after;
    EXPECT_FALSE(wrong.over_limit) << after;
  }

  CompileOptions options_;
  task::Task task_ = copy_task();
};

// NVRTC has not said a word about such a candidate: g++ alone decides, and the answer is not kept.
TEST_F(NvrtcServer, ACandidateThatEndsNvrtcCostsNoOtherItsVerdict) {
  HostToolchain toolchain(options_);
  for (const char* deed : {"do_crash", "do_hang", "do_fork"}) {
    const CompileResult result = compile(toolchain, deed);
    EXPECT_EQ(result.verdict, Verdict::kOk) << deed << "\n" << result.log;
    EXPECT_TRUE(result.over_limit) << deed;
    expect_right_answers(toolchain, deed);
  }
}

TEST_F(NvrtcServer, ACandidateThatChangesNvrtcChangesItForItselfAlone) {
  HostToolchain toolchain(options_);
  for (const char* deed : {"do_poison", "do_write_to_server", "do_leave_folder", "do_kill_server"}) {
    (void)compile(toolchain, deed);
    expect_right_answers(toolchain, deed);
  }
}

TEST_F(NvrtcServer, OneCandidateAloneEndsAsInABatch) {
  HostToolchain toolchain(options_);
  for (const char* name : {"good", "is_wrong", "do_crash"}) {
    const CompileResult batch = compile(toolchain, name);
    fs::remove_all(options_.cache);
    HostToolchain other(options_);
    const CompileResult alone = compile(other, name);
    EXPECT_EQ(alone.verdict, batch.verdict) << name;
    EXPECT_EQ(alone.log, batch.log) << name;
    EXPECT_EQ(alone.over_limit, batch.over_limit) << name;
  }
}

}  // namespace
}  // namespace warpsmith::toolchain

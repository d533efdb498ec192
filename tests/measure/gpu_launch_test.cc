// Every way to launch that a plan can say, on a GPU: the right program is right, and its wrong twin is found.
// Skips where there is no GPU; gpu_launch_programs_test.cc has what can be said of the programs without one.
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <optional>

#include "gpu_launch_programs.h"
#include "task_folder.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/measure/gpu.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::measure {
namespace {

class GpuLaunch : public testing::TestWithParam<LaunchProgram> {
 protected:
  void SetUp() override {
    try {
      load_torch_cuda();
      const device::GpuFacts facts = device::Gpu().facts();
      if (program().hopper && facts.major < 9)
        GTEST_SKIP() << facts.name << " is older than compute capability 9.0";
      target_ = toolchain::target_of_capability(facts.major, facts.minor);
    } catch (const Error& e) {
      GTEST_SKIP() << "no GPU to test on: " << e.what();
    }
    ASSERT_TRUE(target_) << "no target is known for this GPU";
  }
  const LaunchProgram& program() const { return GetParam(); }
  std::filesystem::path cache() const { return scratch_ / "cache"; }

  std::unique_ptr<GpuMeasurer> measurer(bool timing) const {
    Settings settings = quick_settings();
    settings.device_kind = "gpu";
    settings.timing = timing;
    return std::make_unique<GpuMeasurer>(settings, harness_cubin(to_string(*target_), cache(), true));
  }
  Measurement measure(GpuMeasurer& measurer, const std::string& source) const {
    const Candidate made = make_plan_candidate(folder_.task().id, source, {});
    toolchain::CompileOptions options;
    options.cache = cache();
    options.unsandboxed = true;
    const toolchain::CompileResult result =
        toolchain::compile_for_gpu(made, folder_.task(), *target_, options);
    EXPECT_EQ(result.verdict, Verdict::kOk) << result.log;
    return measurer.measure(folder_.task(), made, result.binary).measurement;
  }

  Scratch scratch_;
  TaskFolder folder_{program().name, program().task.c_str()};
  std::optional<toolchain::GpuTarget> target_;
};

TEST_P(GpuLaunch, IsRightAndItsWrongTwinIsNot) {
  const auto one = measurer(false);
  const Measurement right = measure(*one, program().source);
  ASSERT_EQ(right.verdict, Verdict::kOk) << to_string(right.verdict) << ": " << right.detail;
  EXPECT_LE(right.max_error, right.error_bound);
  const Measurement wrong = measure(*one, program().wrong_twin());
  EXPECT_EQ(wrong.verdict, Verdict::kWrongOutput) << to_string(wrong.verdict) << ": " << wrong.detail;
  EXPECT_FALSE(one->lost());
}

// In rows of calls, each checked, and from an idle GPU.
TEST_P(GpuLaunch, IsTimed) {
  const auto one = measurer(true);
  const Measurement m = measure(*one, program().source);
  // Small programs on a busy host may come to no score; but none may be blamed for it.
  EXPECT_TRUE(m.verdict == Verdict::kOk || m.verdict == Verdict::kUnstable)
      << to_string(m.verdict) << ": " << m.detail;
  EXPECT_GT(m.rounds, 0);
  EXPECT_GT(m.candidate_ns, 0);
  std::cout << m.candidate_ns << " ns, " << m.speedup << " times as fast as eager\n";
}

INSTANTIATE_TEST_SUITE_P(All, GpuLaunch, testing::ValuesIn(launch_programs()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace warpsmith::measure

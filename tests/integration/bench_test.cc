// `warpsmith bench TASK KERNEL…`, the whole command with its job programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/machine.h"

namespace warpsmith {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTask = R"(schema: warpsmith.task/1
title: doubles
level: 1
split: extra
ops: [part]
dims: [N]
inputs: {x: {shape: [N]}}
outputs: {out: {shape: [N]}}
timing: [{N: 4096}]
hidden: [{N: 3}]
reference: |
  def forward(x: Tensor) -> Tensor:
    return x * 2.0
)";
constexpr const char* kKernel = R"(// plan: launch doubled<<<cdiv(N, 128), 128>>>(x, out, N)
extern "C" __global__ void doubled(const float* x, float* out, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) out[i] = FACTOR * x[i];
}
)";

class Bench : public testing::Test {
 protected:
  void SetUp() override {
    make_folders(scratch_.path() / "datasets/doubled");
    write_file_atomic(scratch_.path() / "datasets/doubled/task.yaml", kTask);
  }
  void add_kernel(const std::string& name, const std::string& factor) {
    std::string source = kKernel;
    source.replace(source.find("FACTOR"), 6, factor);
    write_file_atomic(scratch_.path() / name, source);
  }
  process::ChildResult bench(std::vector<std::string> arguments) {
    process::ChildSpec spec;
    spec.argv = {(program_folder().parent_path() / "warpsmith").string(), "bench"};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.folder = scratch_.path();
    spec.sandbox.allow_processes = true;
    spec.limits.wall_s = 100;
    return process::run_child(spec);
  }
  Scratch scratch_;
};

TEST_F(Bench, ARightKernelIsTimed) {
  add_kernel("right.cu", "2.0f");
  const process::ChildResult result = bench({"doubled", "right.cu", "--device", "cpu", "--json"});
  const Json answer = Json::parse(result.out);
  const Json& kernel = answer.at("kernels").at(0);
  const Json& m = kernel.at("measurement");
  EXPECT_EQ(kernel.at("kernel"), "right.cu");
  EXPECT_EQ(kernel.at("tier"), "plan");
  EXPECT_GT(m.at("rounds"), 0);
  EXPECT_GT(m.at("candidate_ns"), 0);
  EXPECT_EQ(kernel.at("over").at("eager").at("speedup"), m.at("speedup"));
  // A busy machine may give no score; right it is all the same.
  const std::string verdict = m.at("verdict");
  EXPECT_TRUE(verdict == "ok" || verdict == "unstable") << verdict;
  EXPECT_EQ(result.exit_code, verdict == "ok" ? kExitOk : kExitFailed) << result.err;
}

TEST_F(Bench, AWrongKernelHasItsFirstWrongElementAndTheOthersTheirVerdicts) {
  add_kernel("wrong.cu", "2.5f");
  add_kernel("broken.cu", "no_such_name");
  add_kernel("right.cu", "2.0f");
  write_file_atomic(scratch_.path() / "module.py", "def forward(x):\n  return x * 2\n");
  const process::ChildResult result = bench({"datasets/doubled", "wrong.cu", "broken.cu", "right.cu",
                                             "module.py", "--device", "cpu", "--verdicts-only"});
  EXPECT_EQ(result.exit_code, kExitFailed) << result.err;
  EXPECT_THAT(result.out, HasSubstr("task doubled, N=4096, "));
  EXPECT_THAT(result.out, HasSubstr("wrong.cu   wrong_output"));
  EXPECT_THAT(result.out, HasSubstr("out["));
  EXPECT_THAT(result.out, HasSubstr("broken.cu  compile_error"));
  EXPECT_THAT(result.out, HasSubstr("broken.cu:4:"));
  EXPECT_THAT(result.out, HasSubstr("right.cu   ok"));
  EXPECT_THAT(result.out, HasSubstr("module.py  unsupported"));
}

TEST_F(Bench, MistakesAreToldBeforeAnythingRuns) {
  add_kernel("right.cu", "2.0f");
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"doubledd", "right.cu"}, "did you mean `doubled`?"},
      {{"doubled", "none.cu"}, "none.cu: there is no such file"},
      {{"doubled", "right.cu", "--device", "CPU"}, "did you mean `cpu`?"},
      {{"doubled", "right.cu", "--baseline", "cudn"}, "did you mean `cudnn`?"},
      {{"doubled", "right.cu", "--device", "cpu", "--baseline", "all"},
       "on the CPU only `eager` is measured"},
      {{"doubled", "datasets/doubled/task.yaml"}, "a candidate of one file ends in .cu"},
  };
  for (const auto& [arguments, words] : cases) {
    const process::ChildResult result = bench(arguments);
    EXPECT_EQ(result.exit_code, kExitUsage) << words;
    EXPECT_THAT(result.err, HasSubstr(words));
  }
}

}  // namespace
}  // namespace warpsmith

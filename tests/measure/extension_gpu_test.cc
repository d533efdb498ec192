// Candidates of tiers `extension` and `python` on a GPU, end to end. Without a GPU, nvcc or torch these tests
// skip by name; tests/hacks has the tables of tricks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/measure/gpu_workers.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/toolchain/extension.h"
#include "warpsmith/toolchain/python.h"

namespace warpsmith::measure {
namespace {

using ::testing::HasSubstr;

class HostedOnGpu : public ::testing::Test {
 protected:
  void open(const std::string& lacks) {
    if (!lacks.empty()) GTEST_SKIP() << lacks;
    if (!fs::exists("/dev/nvidiactl")) GTEST_SKIP() << "there is no GPU here";
    const char* chosen = std::getenv("WARPSMITH_BENCH_TARGET");
    target_ = chosen != nullptr ? chosen : "sm_90a";
    cache_ = fs::temp_directory_path() / ("warpsmith-extension-gpu-" + std::to_string(::getpid()));
    Settings settings;
    settings.device_kind = "gpu";
    settings.unsandboxed = true;
    settings.budget_s = 1;
    workers_ = std::make_unique<GpuWorkers>(settings, fs::path(WARPSMITH_SOURCE_DIR) / "datasets",
                                            harness_cubin(target_, cache_, true));
  }
  void TearDown() override {
    if (!cache_.empty()) fs::remove_all(cache_);
  }

  Measurement measure_candidate(Candidate c) {
    c.id = candidate_id(c);
    toolchain::CompileOptions options;
    options.cache = cache_;
    options.timeout_s = 120;
    options.unsandboxed = true;
    Diagnostics diagnostics;
    const auto task = task::load_task(fs::path(WARPSMITH_SOURCE_DIR) / "datasets" / c.task, diagnostics);
    const toolchain::GpuTarget target = *toolchain::parse_gpu_target(target_);
    const toolchain::CompileResult made = c.tier == Tier::kPython
                                              ? toolchain::compile_python(c, *task, target, options)
                                              : toolchain::compile_extension(c, *task, target, options);
    EXPECT_EQ(made.verdict, Verdict::kOk) << made.log;
    return workers_->measure(c, made.binary).measurement;
  }

  std::string target_;
  fs::path cache_;
  std::unique_ptr<GpuWorkers> workers_;
};

class ExtensionOnGpu : public HostedOnGpu {
 protected:
  void SetUp() override { open(toolchain::extension_toolchain_lacks()); }

  Measurement measure(const std::string& body, const std::string& id = "gelu") {
    Candidate c;
    c.task = id;
    c.tier = Tier::kExtension;
    c.files = {
        {"kernel.cu",
         "#include <torch/extension.h>\n__global__ void k(const float* x, float* o, int n) { int i = "
         "blockIdx.x * 256 + "
         "threadIdx.x; if (i < n) o[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f)); }\n"
         "torch::Tensor forward(torch::Tensor x) { auto o = torch::empty_like(x); int n = x.numel();\n" +
             body + "\nreturn o; }\n"}};
    return measure_candidate(std::move(c));
  }
};

class PythonOnGpu : public HostedOnGpu {
 protected:
  void SetUp() override { open(toolchain::python_toolchain_lacks()); }

  Measurement measure(const std::string& model, const std::string& id = "gelu") {
    Candidate c;
    c.task = id;
    c.tier = Tier::kPython;
    c.files = {{"model.py", model}};
    return measure_candidate(std::move(c));
  }
};

constexpr const char* kHonest = "k<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), o.data_ptr<float>(), n);";

TEST_F(ExtensionOnGpu, AnHonestOneIsTimed) {
  const Measurement m = measure(kHonest);
  ASSERT_EQ(m.verdict, Verdict::kOk) << m.detail;
  EXPECT_GT(m.speedup, 0.2);
  EXPECT_LT(m.speedup, 5);
  EXPECT_GE(m.rounds, 7);
  EXPECT_GT(m.candidate_event_ns.value_or(0), 0);
  EXPECT_TRUE(m.roofline_ns && m.gpu_timed_s && m.host_bound);
  EXPECT_EQ(m.own_share, 1.0) << m.clock.at("kernels");
  EXPECT_EQ(m.clock.at("kernels"), "own k 100 %");
}

TEST_F(ExtensionOnGpu, WrongOnesAreFound) {
  // Two calls leave two poisons.
  EXPECT_THAT(measure("").verdict, testing::AnyOf(Verdict::kWrongOutput, Verdict::kNondeterministic));
  EXPECT_EQ(measure("*(volatile int*)8 = 1;").verdict, Verdict::kCrash);
  // And the next one is measured as if nothing had been.
  EXPECT_EQ(measure(std::string(kHonest) + " // once more").verdict, Verdict::kOk);
}

// What is kept for a task goes with it, also where the one between was never timed.
TEST_F(ExtensionOnGpu, ATaskCanComeBack) {
  EXPECT_EQ(measure(kHonest).verdict, Verdict::kOk);
  EXPECT_EQ(measure(kHonest, "sum_all").verdict, Verdict::kWrongOutput);
  const Measurement m = measure(std::string(kHonest) + " // again");
  EXPECT_EQ(m.verdict, Verdict::kOk) << m.detail;
  EXPECT_EQ(workers_->lost(), 0);
}

TEST_F(PythonOnGpu, AModuleIsTimed) {
  const Measurement m = measure(
      "import torch\nclass ModelNew(torch.nn.Module):\n  def forward(self, x):\n"
      "    return torch.nn.functional.gelu(x)\n");
  ASSERT_EQ(m.verdict, Verdict::kOk) << m.detail;
  EXPECT_GT(m.speedup, 0.2);
  EXPECT_LT(m.speedup, 2);
  EXPECT_GE(m.rounds, 7);
  EXPECT_GT(m.candidate_event_ns.value_or(0), 0);
  EXPECT_EQ(m.own_share, 0.0);  // the kernel is torch's
  EXPECT_THAT(m.clock.at("kernels"), HasSubstr("at::native::"));
}

// Also of a graph that repeats kernels of both kinds.
TEST_F(PythonOnGpu, AGraphTellsTheKernelsInIt) {
  const Measurement m = measure(
      "import torch\nclass ModelNew(torch.nn.Module):\n  graph = None\n  def forward(self, x):\n"
      "    if self.graph is None or self.x.shape != x.shape:\n"
      "      self.x = x.clone()\n      self.y = torch.nn.functional.gelu(self.x)\n"
      "      self.graph = torch.cuda.CUDAGraph()\n"
      "      with torch.cuda.graph(self.graph):\n        self.y = torch.nn.functional.gelu(self.x)\n"
      "    self.x.copy_(x)\n    self.graph.replay()\n    return self.y.clone()\n");
  ASSERT_EQ(m.verdict, Verdict::kOk) << m.detail;
  EXPECT_EQ(m.own_share, 0.0);
  EXPECT_THAT(m.clock.at("kernels"), HasSubstr("at::native::"));
}

TEST_F(PythonOnGpu, WrongOnesAreFound) {
  EXPECT_EQ(measure("def forward(x):\n  return x.relu()\n").verdict, Verdict::kWrongOutput);
  EXPECT_EQ(measure("import ctypes\ndef forward(x):\n  ctypes.string_at(8)\n").verdict, Verdict::kCrash);
  const Measurement m = measure("def forward(x):\n  return x.new_empty(1 << 40)\n");
  EXPECT_EQ(m.verdict, Verdict::kOutOfMemory) << m.detail;
  EXPECT_EQ(measure("import torch\ndef forward(x):\n  return torch.nn.functional.gelu(x)\n").verdict,
            Verdict::kOk);
}

// Triton compiles when a kernel first runs: in a child of its own, before anybody holds the GPU.
TEST_F(PythonOnGpu, AKernelInTritonIsTimed) {
  const fs::path dataset = fs::path(WARPSMITH_SOURCE_DIR) / "datasets/gelu/python/ok/triton_kernel.py";
  const Measurement m = measure(read_file(dataset));
  if (m.detail.find("No module named 'triton'") != std::string::npos) GTEST_SKIP() << m.detail;
  ASSERT_EQ(m.verdict, Verdict::kOk) << m.detail;
  EXPECT_GT(m.speedup, 0.1);
  EXPECT_EQ(m.own_share, 1.0) << m.clock.at("kernels");
  EXPECT_GT(m.seconds, m.gpu_held_s.value_or(0) + 1) << "what was compiled is not held against the GPU";
}

// So does torch.compile, in each of its modes, at each of the task's shapes.
TEST_F(PythonOnGpu, WhatTorchCompilesIsTimed) {
  for (const std::string mode : {"default", "reduce-overhead", "max-autotune"}) {
    const Measurement m = measure(
        "import torch\nclass ModelNew(torch.nn.Module):\n  def __init__(self):\n    super().__init__()\n"
        "    self.work = torch.compile(torch.nn.functional.gelu, mode='" +
        mode + "')\n  def forward(self, x):\n    return self.work(x)\n");
    if (m.detail.find("No module named 'triton'") != std::string::npos) GTEST_SKIP() << m.detail;
    ASSERT_EQ(m.verdict, Verdict::kOk) << mode << ": " << m.detail;
    EXPECT_GT(m.speedup, 0.1) << mode;
    EXPECT_EQ(m.own_share, 0.0) << "torch wrote the kernel; " << m.clock.at("kernels");
    std::printf("%s: %.2fx, held %.2f s of %.2f s: %s\n", mode.c_str(), m.speedup, m.gpu_held_s.value_or(0),
                m.seconds, m.clock.at("held_s").c_str());
  }
}

}  // namespace
}  // namespace warpsmith::measure

// What measuring on a GPU says of its ceilings, and of programs that are faster than these allow. Skips where
// there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "scratch.h"
#include "task_folder.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/measure/gpu.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/measure/probe.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/records/ceilings.h"
#include "warpsmith/records/gpu_doubts.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::measure {
namespace {

// 64 MiB of w that the answer depends on, and no value of it changes the answer.
constexpr const char* kUnread = R"yaml(schema: warpsmith.task/1
title: x beside the sum of w
level: 1
split: extra
ops: [sum]
dims: [N, K]
inputs:
  x: {role: data, dtype: float32, shape: [N], values: "normal(0, 1)"}
  w: {role: parameter, dtype: float32, shape: [K], values: "normal(0, 1)"}
outputs:
  out: {dtype: float32, shape: [N]}
reference: |
  def forward(x: Tensor, w: Tensor) -> Tensor:
    return x * 2.0 + w.sum() * 0.0
timing:
  - {N: 64, K: 16777216}
hidden:
  - {N: 1, K: 1}
flops: K
bytes: 8 * N + 4 * K
)yaml";

constexpr const char* kSkipsItsInput =
    "// plan: launch k<<<cdiv(N, 64), 64>>>(x, out, N)\n"
    "extern \"C\" __global__ void k(const float* x, float* out, int N) {\n"
    "  int i = blockIdx.x * 64 + threadIdx.x;\n"
    "  if (i < N) out[i] = x[i] * 2.f;\n"
    "}\n";

constexpr const char* kReadsItsInput =
    "// plan: temp t float32[SMS * 8]\n"
    "// plan: launch part<<<SMS * 8, 256>>>(w, t, K)\n"
    "// plan: launch whole<<<cdiv(N, 64), 64>>>(x, t, out, N, SMS * 8)\n"
    "extern \"C\" __global__ void part(const float* w, float* t, int K) {\n"
    "  __shared__ float sums[256];\n"
    "  float sum = 0.f;\n"
    "  int i = blockIdx.x * 256 + threadIdx.x, stride = gridDim.x * 256;\n"
    "  for (; i + 7 * stride < K; i += 8 * stride)\n"
    "    for (int j = 0; j < 8; j++) sum += w[i + j * stride];\n"
    "  for (; i < K; i += stride) sum += w[i];\n"
    "  sums[threadIdx.x] = sum;\n"
    "  __syncthreads();\n"
    "  for (int n = 128; n > 0; n /= 2) {\n"
    "    if (threadIdx.x < n) sums[threadIdx.x] += sums[threadIdx.x + n];\n"
    "    __syncthreads();\n"
    "  }\n"
    "  if (threadIdx.x == 0) t[blockIdx.x] = sums[0];\n"
    "}\n"
    "extern \"C\" __global__ void whole(const float* x, const float* t, float* out, int N, int T) {\n"
    "  float sum = 0.f;\n"
    "  for (int i = 0; i < T; i++) sum += t[i];\n"
    "  int i = blockIdx.x * 64 + threadIdx.x;\n"
    "  if (i < N) out[i] = x[i] * 2.f + sum * 0.f;\n"
    "}\n";

TEST(ProgramsOfTheseTests, Compile) {
  const Scratch scratch;
  const TaskFolder folder("unread", kUnread);
  toolchain::CompileOptions options;
  options.cache = scratch.path();
  options.unsandboxed = true;
  for (const char* source : {kSkipsItsInput, kReadsItsInput}) {
    const Candidate made = make_plan_candidate("unread", source, {});
    const auto result =
        toolchain::compile_for_gpu(made, folder.task(), *toolchain::parse_gpu_target("sm_90a"), options);
    EXPECT_EQ(result.verdict, Verdict::kOk) << result.log;
  }
}

class OnAGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      load_torch_cuda();
      target_ = toolchain::target_of_capability(device::Gpu().facts().major, device::Gpu().facts().minor);
    } catch (const Error& e) {
      GTEST_SKIP() << "no GPU to test on: " << e.what();
    }
  }
  fs::path cache() const { return scratch_.path() / "cache"; }
  std::unique_ptr<GpuMeasurer> measurer() const {
    Settings settings = quick_settings();
    settings.device_kind = "gpu";
    settings.ceilings = scratch_.path() / "ceilings";
    return std::make_unique<GpuMeasurer>(settings, harness_cubin(to_string(*target_), cache(), true));
  }
  Measurement measure(GpuMeasurer& measurer, const TaskFolder& folder, const char* source) const {
    const Candidate made = make_plan_candidate(folder.task().id, source, {});
    toolchain::CompileOptions options;
    options.cache = cache();
    options.unsandboxed = true;
    const toolchain::CompileResult result =
        toolchain::compile_for_gpu(made, folder.task(), *target_, options);
    EXPECT_EQ(result.verdict, Verdict::kOk) << result.log;
    return measurer.measure(folder.task(), made, result.binary).measurement;
  }
  Scratch scratch_;
  std::optional<toolchain::GpuTarget> target_;
};

TEST_F(OnAGpu, TheShortProbeIsQuickAndMakesSense) {
  const Ceilings c = probe_this_gpu({.cache = cache(), .thorough = false, .unsandboxed = true});
  std::cout << ceilings_text(c);
  EXPECT_LT(c.seconds, 3.0);
  for (const char* figure : {kReadBandwidth, kCopyBandwidth, kFloat64Rate, kFloat32Rate, kTf32Rate,
                             kBfloat16Rate, kFloat16Rate, kLaunchQueued, kLaunchIdle}) {
    ASSERT_NE(c.find(figure), nullptr) << figure;
    EXPECT_LE(c.find(figure)->low, c.find(figure)->median) << figure;
    EXPECT_LE(c.find(figure)->median, c.find(figure)->high) << figure;
    EXPECT_TRUE(std::string_view(figure).ends_with("_ns") || c.find(figure)->high < 1.5 * c.find(figure)->low)
        << figure << ": a wide spread";
  }
  const double read = c.find(kReadBandwidth)->median, copy = c.find(kCopyBandwidth)->median;
  EXPECT_GT(read, 50e9);
  EXPECT_LT(read, 20e12);
  EXPECT_GT(copy, 0.6 * read);
  EXPECT_LT(copy, 1.2 * read);
  EXPECT_GT(c.find(kFloat32Rate)->median, 1e12);
  // The RTX 30 and 40 series do both at one rate.
  const bool data_centre = c.major == 9 || c.major == 10 || (c.major == 8 && c.minor == 0);
  EXPECT_GT(c.find(kTf32Rate)->median, (data_centre ? 2 : 0.9) * c.find(kFloat32Rate)->median)
      << "TF32 was not switched on, or never off";
  EXPECT_GT(c.find(kBfloat16Rate)->median, 1.2 * c.find(kTf32Rate)->median);
  EXPECT_GT(c.find(kLaunchQueued)->median, 300);
  EXPECT_LT(c.find(kLaunchQueued)->median, c.find(kLaunchIdle)->median);
  EXPECT_LT(c.find(kLaunchIdle)->median, 100e3);
}

TEST_F(OnAGpu, ItsFingerprintMakesSenseAndFitsItsName) {
  const Ceilings one = probe_this_gpu({.cache = cache(), .thorough = false, .unsandboxed = true});
  ASSERT_TRUE(one.fingerprint);
  EXPECT_EQ(one.fingerprint->patterns.size(), one.major >= 8 ? 10u : one.fingerprint->patterns.size());
  std::set<std::string> digests;
  for (const auto& [name, digest] : one.fingerprint->patterns) digests.insert(digest);
  EXPECT_EQ(digests.size(), one.fingerprint->patterns.size()) << "each computes something of its own";
  const auto& figures = one.fingerprint->figures;
  ASSERT_TRUE(figures.contains(kFloat64Share) && figures.contains(kSmClock));
  EXPECT_GT(figures.at(kFloat64Share), 1 / 100.0);
  EXPECT_LT(figures.at(kFloat64Share), 1.1);
  EXPECT_GT(figures.at(kSmClock), 200e6);
  EXPECT_LT(figures.at(kSmClock), 5e9);
  if (const auto edge = figures.find(kL2Edge); edge != figures.end()) {
    EXPECT_GT(edge->second, static_cast<double>(one.l2_bytes) / 9);
  }
  for (const std::string& doubt : gpu_doubts(one, process::known_gpu_type(one.name), {}))
    ADD_FAILURE() << doubt;
}

TEST_F(OnAGpu, WhatSkipsItsInputIsTooFast) {
  const TaskFolder folder("unread", kUnread);
  const auto one = measurer();
  const Measurement m = measure(*one, folder, kSkipsItsInput);
  EXPECT_EQ(m.verdict, Verdict::kTooFast) << to_string(m.verdict) << ": " << m.detail;
  EXPECT_NE(m.detail.find(" ns a call; the bytes that it must read from memory take "), std::string::npos)
      << m.detail;
  EXPECT_GT(m.rounds, 0);
}

TEST_F(OnAGpu, WhatReadsItIsNotAndHasItsShareOfTheRoofline) {
  const TaskFolder folder("unread", kUnread);
  const auto one = measurer();
  const Measurement m = measure(*one, folder, kReadsItsInput);
  ASSERT_EQ(m.verdict, Verdict::kOk) << to_string(m.verdict) << ": " << m.detail;
  EXPECT_EQ(m.roofline_bound, "memory");
  ASSERT_TRUE(roofline_share(m));
  std::cout << m.candidate_ns << " ns, " << 100 * *roofline_share(m) << " % of the roofline\n";
  EXPECT_GT(*roofline_share(m), 0.3);
  EXPECT_LT(*roofline_share(m), 1.1);
  ASSERT_TRUE(m.gpu_held_s && m.gpu_timed_s && m.baseline_idle_ns && m.candidate_idle_ns && m.host_bound);
  EXPECT_GT(*m.gpu_timed_s, 0);
  EXPECT_LT(*m.gpu_timed_s, *m.gpu_held_s);
  EXPECT_GT(*m.candidate_idle_ns, 0.5 * m.candidate_ns);
  // NVML, where it is: a container may lack it.
  if (m.gpu_before && m.gpu_before->sm_clock_mhz) {
    EXPECT_GT(*m.gpu_before->sm_clock_mhz, 100);
    EXPECT_NE(m.clock_reasons, "");
    std::cout << "SMs at " << *m.gpu_before->sm_clock_mhz << " MHz, then " << *m.gpu_after->sm_clock_mhz
              << " MHz; clocks: " << m.clock_reasons << "\n";
  }
  // The ceilings are kept, and the next process takes them.
  const auto kept = read_ceilings(ceilings_path(scratch_.path() / "ceilings", m.device->uuid));
  ASSERT_TRUE(kept);
  EXPECT_FALSE(kept->thorough);
}

}  // namespace
}  // namespace warpsmith::measure

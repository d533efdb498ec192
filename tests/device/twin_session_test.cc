#include "warpsmith/device/twin_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "twin_fixture.h"

namespace warpsmith::device {
namespace {

std::vector<float> ramp(std::size_t n, float scale = 1) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = scale * static_cast<float>(static_cast<int>(i) - static_cast<int>(n / 2));
  return v;
}

constexpr const char* kRelu = R"(// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) out[i] = fmaxf(x[i], 0.f);
}
)";

Case relu_case(std::size_t n) {
  Case c;
  c.source = kRelu;
  c.inputs["x"] = tensor(ramp(n));
  c.outputs["out"] = tensor(std::vector<float>(n));
  c.dims["N"] = static_cast<std::int64_t>(n);
  return c;
}

TEST(TwinSession, RunsAnElementwiseKernel) {
  for (const std::size_t n : {1u, 255u, 256u, 257u, 10000u}) {
    const Outcome outcome = run_case(relu_case(n));
    ASSERT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
    const std::vector<float> x = ramp(n), out = values<float>(outcome.outputs.at("out"));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], std::max(x[i], 0.f)) << i;
  }
}

TEST(TwinSession, TimesAnEmptyRunInAChildWithoutACandidate) {
  TwinOptions options;
  options.sandbox = process::available_sandbox();
  options.binary = "/nowhere/at/all.so";  // not loaded
  EmptyTwin empty(options);
  double least = empty.run_ns();
  for (int i = 0; i < 20; ++i) least = std::min(least, empty.run_ns());
  EXPECT_GT(least, 10);
  EXPECT_LT(least, 1e6);
}

TEST(TwinSession, SpreadsBlocksOverThreads) {
  Case c = relu_case(100000);
  c.threads = 3;
  const Outcome outcome = run_case(c);
  ASSERT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
  const std::vector<float> x = ramp(100000), out = values<float>(outcome.outputs.at("out"));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[i], std::max(x[i], 0.f)) << i;
}

}  // namespace
}  // namespace warpsmith::device

#include "warpsmith/method/program_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace warpsmith::method {
namespace {

std::map<std::string, double> features_of(const Candidate& candidate, const CodeFacts& code = {}) {
  const std::vector<std::string>& names = program_feature_names();
  const std::vector<double> values = program_features(candidate, code);
  EXPECT_EQ(names.size(), values.size());
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  std::map<std::string, double> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_TRUE(std::isfinite(values[i])) << names[i];
    out[names[i]] = values[i];
  }
  return out;
}

std::map<std::string, double> features_of(const std::string& source) {
  return features_of(make_plan_candidate("a", source, {}));
}

double count(double n) { return std::log2(1 + n); }

TEST(ProgramFeatures, CountWordsOfTheCode) {
  auto f = features_of(R"(// for for __shared__ float4
__global__ void k(const float* __restrict__ x, float* out, int N) {
  __shared__ float row[32];
  const float4* v = reinterpret_cast<const float4*>(x);
  #pragma unroll
  for (int i = 0; i < 4; ++i) row[i] = __expf(v[i].x) / tanhf(v[i].y);
  __syncthreads();
  if (threadIdx.x < 32) out[0] = __shfl_xor_sync(~0u, row[0], 1);
}
// plan: temp t float32[N]
// plan: launch k<<<dim3(32, N), 256, 256 * 4>>>(x, out, N)
)");
  for (const char* once : {"kernels", "loops", "branches", "shared", "syncthreads", "shuffles", "unroll",
                           "restrict", "math", "fast_math", "divisions", "launches", "temporaries"})
    EXPECT_EQ(f[once], count(1)) << once;
  EXPECT_EQ(f["vector_types"], count(2));
  for (const char* none :
       {"atomics", "matrix", "asm", "plan_loops", "plan_branches", "cooperative", "libraries"})
    EXPECT_EQ(f[none], 0) << none;
  EXPECT_EQ(f["block"], count(256));
  EXPECT_EQ(f["block_dimensions"], 1);
  EXPECT_EQ(f["grid_dimensions"], 2);
  EXPECT_EQ(f["dynamic_shared"], 1);
  EXPECT_EQ(f["fixed_grid"], 0);
}

// Words behind a plan are the code's again.
TEST(ProgramFeatures, PlansMayStandAnywhere) {
  auto f = features_of(
      "// plan: for s in 0..3\n// plan: launch k<float, 4><<<SMS * 2, dim3(32, 8)>>>(x)\n// plan: end\n"
      "__global__ void k() { for (;;) {} while (1) {} }\n// plan: launch z<<<1, N>>>(x)\n");
  EXPECT_EQ(f["loops"], count(2));
  EXPECT_EQ(f["plan_loops"], count(1));
  EXPECT_EQ(f["launches"], count(2));
  EXPECT_EQ(f["block"], count(256)) << "the one that is a number";
  EXPECT_EQ(f["block_dimensions"], 2);
  EXPECT_EQ(f["resident_grid"], 1);
  EXPECT_EQ(f["fixed_grid"], 1);
  EXPECT_EQ(f["dynamic_shared"], 0);
}

TEST(ProgramFeatures, WhatTheCompilerSaidIsKnownOrNot) {
  const Candidate candidate = make_plan_candidate("a", "x", {});
  auto f = features_of(candidate);
  for (const char* name : {"registers", "static_shared", "spills", "tensor_cores", "block"})
    EXPECT_EQ(f[name], -1) << name;
  CodeFacts code;
  code.registers = 31;
  code.shared_bytes = 0;
  code.spill_bytes = 15;
  code.tensor_cores = false;
  f = features_of(candidate, code);
  EXPECT_EQ(f["registers"], 5);
  EXPECT_EQ(f["static_shared"], 0);
  EXPECT_EQ(f["spills"], 4);
  EXPECT_EQ(f["tensor_cores"], 0);
}

TEST(ProgramFeatures, AnySourceHasSome) {
  features_of("");
  features_of("<<<");
  features_of("k<<<((((, )>>>");
  features_of("k<<<99999999999999999999, 1>>>(");
  features_of(Candidate());
  auto f = features_of(make_one_file_candidate(
      Tier::kPython, "a", "import torch  # for for\nfor i in range(3):\n  torch.add(1, 2)\n", {}));
  EXPECT_EQ(f["loops"], count(1)) << "comments do not count";
  EXPECT_EQ(f["libraries"], count(2));
}

}  // namespace
}  // namespace warpsmith::method

// What a warp-level operation gives of lanes that take no part: those outside the mask, that have returned,
// or that the block is too small for.
#include <gtest/gtest.h>

#include <numeric>

#include "twin_fixture.h"

namespace warpsmith::device {
namespace {

struct Row {
  const char* name;
  const char* launch;  // "<<<grid, block>>>"
  const char* body;    // of k(const float* in, float* out); `in` holds -1, -2, …, -64; t is threadIdx.x
  // Of thread 0 where a lane that takes no part gives the reader's own value.
  float harmless;
};

float first_output(const char* launch, const std::string& body) {
  Case c;
  c.source = std::string("// plan: fill out 0\n// plan: launch k") + launch + "(in, out)\n" +
             "#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n#include "
             "<cooperative_groups/reduce.h>\n"
             "namespace cg = cooperative_groups;\n__global__ void k(const float* in, float* out) { int t = "
             "threadIdx.x; float v = in[t]; " +
             body + " }\n";
  std::vector<float> in(64);
  for (int i = 0; i < 64; ++i) in[static_cast<std::size_t>(i)] = -1.f - static_cast<float>(i);
  c.inputs["in"] = tensor(in);
  c.outputs["out"] = tensor(std::vector<float>(64));
  const Outcome outcome = run_case(c);
  EXPECT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
  return outcome.verdict == Verdict::kOk ? values<float>(outcome.outputs.at("out"))[0] : 0.f;
}

TEST(UndefinedLanes, AShuffleFromOneShows) {
  const Row rows[] = {
      {"largest, of a block of 20", "<<<1, 20>>>",
       "for (int h = 16; h > 0; h >>= 1) v = fmaxf(v, __shfl_xor_sync(0xfffffu, v, h)); if (t == 0) out[0] = "
       "v;",
       -1},
      {"largest, of a block of 11 by its active mask", "<<<1, 11>>>",
       "unsigned m = __activemask(); for (int h = 8; h > 0; h >>= 1) v = fmaxf(v, __shfl_down_sync(m, v, "
       "h)); if "
       "(t == 0) out[0] = v;",
       -1},
      {"largest, of lanes that returned", "<<<1, 32>>>",
       "if (t >= 5) return; for (int h = 16; h > 0; h >>= 1) v = fmaxf(v, __shfl_down_sync(~0u, v, h)); if "
       "(t == "
       "0) out[0] = v;",
       -1},
      {"largest, of the one lane that has not returned", "<<<1, 32>>>",
       "if (t >= 1) return; for (int h = 16; h > 0; h >>= 1) v = fmaxf(v, __shfl_down_sync(~0u, v, h)); "
       "out[0] = "
       "v;",
       -1},
      {"smallest, of positive numbers", "<<<1, 20>>>",
       "v = -v; for (int h = 16; h > 0; h >>= 1) v = fminf(v, __shfl_xor_sync(0xfffffu, v, h)); if (t == 0) "
       "out[0] = v;",
       1},
      {"from a lane that returned", "<<<1, 32>>>",
       "if (t == 7) return; float w = __shfl_sync(~0u, v, 7); if (t == 0) out[0] = w;", -1},
      {"from a lane outside the mask", "<<<1, 32>>>",
       "if (t < 16) { float w = __shfl_sync(0xffffu, v, 20); if (t == 0) out[0] = w; } else "
       "__syncwarp(0xffff0000u);",
       -1},
      {"from above", "<<<1, 10>>>", "float w = __shfl_down_sync(0x3ffu, v, 10); if (t == 0) out[0] = w;", -1},
      {"in the second half of a block of 40", "<<<1, 40>>>",
       "float w = __shfl_sync(~0u, v, 9); if (t == 32) out[0] = w; ", -33},
      {"in a section of its own", "<<<1, 12>>>",
       "float w = __shfl_sync(0xfffu, v, 7, 8); if (t == 8) out[0] = w;", -9},
      {"a double", "<<<1, 20>>>",
       "double d = v; for (int h = 16; h > 0; h >>= 1) d = fmax(d, __shfl_xor_sync(0xfffffu, d, h)); if (t "
       "== 0) "
       "out[0] = (float)d;",
       -1},
      {"a half", "<<<1, 20>>>",
       "__half x = __float2half(v); for (int h = 16; h > 0; h >>= 1) x = __hmax(x, __shfl_xor_sync(0xfffffu, "
       "x, "
       "h)); if (t == 0) out[0] = __half2float(x);",
       -1},
      {"an integer's sum", "<<<1, 1>>>",
       "int x = (int)v; for (int h = 16; h > 0; h >>= 1) x = max(x, __shfl_down_sync(1u, x, h)); out[0] = x;",
       -1},
      {"a tile of a block that does not fill it", "<<<1, 20>>>",
       "auto tile = cg::tiled_partition<32>(cg::this_thread_block()); v = cg::reduce(tile, v, "
       "cg::greater<float>()); if (t == 0) out[0] = v;",
       -1},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_NE(first_output(row.launch, row.body), row.harmless);
  }
}

TEST(UndefinedLanes, WhatCudaDefinesStays) {
  const Row rows[] = {
      {"beyond the section: the own value", "<<<1, 32>>>",
       "float w = __shfl_down_sync(~0u, v, 31, 16); if (t == 0) out[0] = w;", -1},
      {"before the first lane: the own value", "<<<1, 20>>>",
       "float w = __shfl_up_sync(0xfffffu, v, 1); if (t == 0) out[0] = w;", -1},
      {"itself, alone", "<<<1, 1>>>", "out[0] = __shfl_sync(1u, v, 0);", -1},
      {"itself, by a width of 1", "<<<1, 1>>>", "out[0] = __shfl_down_sync(1u, v, 16, 1);", -1},
      {"read and not used", "<<<1, 20>>>",
       "for (int h = 16; h > 0; h >>= 1) { float w = __shfl_down_sync(~0u, v, h); if (t + h < 20) v = "
       "fmaxf(v, "
       "w); } if (t == 0) out[0] = v;",
       -1},
      {"votes: lanes that returned have none", "<<<1, 20>>>",
       "if (t >= 10) return; unsigned b = __ballot_sync(~0u, 1); int all = __all_sync(~0u, 1), any = "
       "__any_sync(~0u, 0); if (t == 0) out[0] = (float)b + all * 0.5f + any;",
       1023.5f},
      {"matches: lanes that returned equal nothing", "<<<1, 20>>>",
       "if (t >= 10) return; unsigned m = __match_any_sync(~0u, 3); if (t == 0) out[0] = (float)m;", 1023},
      {"sums: lanes that returned add nothing", "<<<1, 20>>>",
       "if (t >= 10) return; int s = __reduce_add_sync(~0u, 2), m = __reduce_min_sync(~0u, 5); if (t == 0) "
       "out[0] "
       "= (float)(s * 10 + m);",
       205},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(first_output(row.launch, row.body), row.harmless);
  }
}

}  // namespace
}  // namespace warpsmith::device

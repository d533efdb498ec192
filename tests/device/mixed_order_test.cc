// Programs in reverse and in random order (schedule.h): what depends on the order shows, and what CUDA
// promises holds.
#include <gtest/gtest.h>

#include <numeric>

#include "twin_fixture.h"

namespace warpsmith::device {
namespace {

struct Row {
  const char* name;
  const char* launch;  // "<<<grid, block, smem>>> …"
  const char* code;    // a function k(const int* in, int* out); `in` holds 0…1023, `out` is int[1024] of 0
  std::function<int(int)> expected;  // of a program that is right, or would be but for the race
};

Outcome run(const Row& row, bool mixed) {
  Case c;
  c.source = std::string("// plan: fill out 0\n// plan: launch k") + row.launch + "\n" + row.code;
  c.source.insert(c.source.find(">>>") + 3, "(in, out)");
  std::vector<int> in(1024);
  std::iota(in.begin(), in.end(), 0);
  c.inputs["in"] = tensor(in);
  c.outputs["out"] = tensor(std::vector<int>(1024));
  c.mixed = mixed;
  return run_case(c);
}

// The first element that is not as expected; -1 where there is none.
int first_wrong(const Row& row, const std::vector<std::byte>& bytes) {
  const std::vector<int> out = values<int>(bytes);
  for (int i = 0; i < 1024; ++i)
    if (out[static_cast<std::size_t>(i)] != row.expected(i)) return i;
  return -1;
}

int row_sum(int first, int count) { return count * first + count * (count - 1) / 2; }

// All have a data race; most are right in ascending order.
const std::vector<Row>& racing() {
  static const std::vector<Row> all = {
      {"a neighbour in global memory", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; out[t] = t == 0 ? 0 : out[t - 1] + "
       "1; }",
       [](int i) { return i < 256 ? i : 0; }},
      {"a neighbour in another block", "<<<4, 32>>>",
       "__global__ void k(const int* in, int* out) { int i = blockIdx.x * 32 + threadIdx.x; out[i] = i == 0 "
       "? "
       "5 : out[i - 1]; }",
       [](int i) { return i < 128 ? 5 : 0; }},
      {"a block reads what another one wrote", "<<<8, 64>>>",
       "__global__ void k(const int* in, int* out) { int b = blockIdx.x; if (threadIdx.x == 0) out[b] = b; "
       "if "
       "(b == 7 && threadIdx.x == 63) { int s = 0; for (int j = 0; j < 8; ++j) s += out[j]; out[8] = s; } }",
       [](int i) { return i < 8    ? i
                          : i == 8 ? 28
                                   : 0; }},
      {"the reader is the last thread", "<<<2, 128>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[128]; int t = threadIdx.x; s[t] = "
       "in[t]; if (t == 127) { int v = 0; for (int j = 0; j < 128; ++j) v += s[j]; out[blockIdx.x] = v; } }",
       [](int i) { return i < 2 ? row_sum(0, 128) : 0; }},
      {"shared memory set by the first thread", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int c; int t = threadIdx.x; if (t == 0) c = "
       "0; "
       "atomicAdd(&c, 1); __syncthreads(); out[t] = c; }",
       [](int i) { return i < 256 ? 256 : 0; }},
      {"no barrier before shared memory is read", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[256]; int t = threadIdx.x; s[t] = "
       "in[t]; "
       "out[t] = s[t > 0 ? t - 1 : 0]; }",
       [](int i) { return i < 256 ? std::max(i - 1, 0) : 0; }},
      {"no barrier before shared memory is written again", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[256]; int t = threadIdx.x, v = 0; for "
       "(int r = 0; r < 4; ++r) { s[t] = in[r * 256 + t]; __syncthreads(); v += s[(t + 32) % 256]; } out[t] "
       "= "
       "v; }",
       [](int i) { return i < 256 ? 4 * ((i + 32) % 256) + 6 * 256 : 0; }},
      {"the last warp reads what the next round overwrites", "<<<32, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int part[8]; int t = threadIdx.x, lane = t % "
       "32, w = t / 32; for (int r = 0; r < 4; ++r) { int a = in[r * 256 + t]; for (int h = 16; h > 0; h /= "
       "2) "
       "a += __shfl_down_sync(~0u, a, h); if (lane == 0) part[w] = a; __syncthreads(); if (w == 7) { int v = "
       "lane < 8 ? part[lane] : 0; for (int h = 4; h > 0; h /= 2) v += __shfl_down_sync(~0u, v, h); if (lane "
       "== 0) out[blockIdx.x * 4 + r] = v; } } }",
       [](int i) { return i < 128 ? row_sum(i % 4 * 256, 256) : 0; }},
      {"a sum of all blocks without atomics", "<<<4, 64>>>",
       "__global__ void k(const int* in, int* out) { out[threadIdx.x] += in[blockIdx.x]; }",
       [](int i) { return i < 64 ? 6 : 0; }},
      {"one sum a block, added by its first thread", "<<<4, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[256]; int t = threadIdx.x; s[t] = 1; "
       "__syncthreads(); for (int h = 128; h > 0; h /= 2) { if (t < h) s[t] += s[t + h]; __syncthreads(); } "
       "if (t == 0) out[0] += s[0]; }",
       [](int i) { return i == 0 ? 1024 : 0; }},
      {"a sum of all threads in shared memory", "<<<1, 64>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s; if (threadIdx.x == 0) s = 0; "
       "__syncthreads(); s += 1; __syncthreads(); out[threadIdx.x] = s; }",
       [](int i) { return i < 64 ? 64 : 0; }},
      {"the largest of all blocks without atomics", "<<<8, 32>>>",
       "__global__ void k(const int* in, int* out) { int v = in[255 - blockIdx.x * 32 - threadIdx.x]; if (v "
       "> "
       "out[0]) out[0] = v; }",
       [](int i) { return i == 0 ? 255 : 0; }},
      {"a histogram without atomics", "<<<4, 64>>>",
       "__global__ void k(const int* in, int* out) { int i = blockIdx.x * 64 + threadIdx.x; ++out[in[i] % "
       "7]; }",
       [](int i) { return i < 7 ? 256 / 7 + (i < 256 % 7) : 0; }},
      {"a warp's tree in shared memory without __syncwarp", "<<<1, 32>>>",
       "__global__ void k(const int* in, int* out) { __shared__ volatile int s[64]; int t = threadIdx.x; "
       "s[t] = "
       "1; s[t + 32] = 0; __syncwarp(); for (int h = 16; h > 0; h /= 2) s[t] = s[t] + s[t + h]; if (t == 0) "
       "out[0] = s[0]; }",
       [](int i) { return i == 0 ? 32 : 0; }},
      {"in place over a row", "<<<1, 128>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; out[t] = in[t]; __syncthreads(); "
       "if "
       "(t < 127) out[t] = out[t + 1]; }",
       [](int i) { return i < 127    ? i + 1
                          : i == 127 ? 127
                                     : 0; }},
      {"a count of blocks without atomics", "<<<8, 32>>>",
       "__device__ int done;\n__global__ void k(const int* in, int* out) { if (threadIdx.x == 0) { if "
       "(blockIdx.x == 0) done = 0; int mine = ++done; if (mine == 8) out[0] = 1; } }",
       [](int i) { return i == 0 ? 1 : 0; }},
      {"a tile is loaded again before all have used it", "<<<1, 64>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[64]; int t = threadIdx.x, v = 0; for "
       "(int "
       "r = 0; r < 4; ++r) { s[t] = in[r * 64 + t]; __syncthreads(); for (int j = 0; j < 64; ++j) v += s[j]; "
       "} "
       "out[t] = v; }",
       [](int i) { return i < 64 ? row_sum(0, 256) : 0; }},
      {"an inclusive scan that reads what neighbours write", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[256]; int t = threadIdx.x; s[t] = 1; "
       "__syncthreads(); for (int h = 1; h < 256; h *= 2) { if (t >= h) s[t] += s[t - h]; __syncthreads(); } "
       "out[t] = s[t]; }",
       [](int i) { return i < 256 ? i + 1 : 0; }},
      {"the first warp adds the parts of the others without a barrier", "<<<2, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int part[8]; int t = threadIdx.x, v = in[t]; "
       "for "
       "(int h = 16; h > 0; h /= 2) v += __shfl_down_sync(~0u, v, h); if (t % 32 == 0) part[t / 32] = v; if "
       "(t == "
       "255) { v = 0; for (int j = 0; j < 8; ++j) v += part[j]; out[blockIdx.x] = v; } }",
       [](int i) { return i < 2 ? row_sum(0, 256) : 0; }},
      {"a result that is read while the next one is made in its place", "<<<4, 128>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[128]; int t = threadIdx.x; s[t] = "
       "in[t]; "
       "__syncthreads(); for (int h = 64; h > 0; h /= 2) { if (t < h) s[t] = max(s[t], s[t + h]); "
       "__syncthreads(); } int m = s[0]; s[t] = 1; __syncthreads(); for (int h = 64; h > 0; h /= 2) { if (t "
       "< h) "
       "s[t] += s[t + h]; __syncthreads(); } out[blockIdx.x * 128 + t] = m + s[0]; }",
       [](int i) { return i < 512 ? 127 + 128 : 0; }},
      {"the first block clears what others add to", "<<<4, 64>>>",
       "__global__ void k(const int* in, int* out) { if (blockIdx.x == 0) out[threadIdx.x] = 0; "
       "atomicAdd(&out[threadIdx.x], 1); }",
       [](int i) { return i < 64 ? 4 : 0; }},
      {"a total that is read before all have added to it", "<<<1, 128>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s; int t = threadIdx.x; if (t == 0) s = "
       "0; "
       "__syncthreads(); atomicAdd(&s, 1); if (t == 127) out[0] = s; }",
       [](int i) { return i == 0 ? 128 : 0; }},
      {"sums of vectors of four", "<<<8, 32>>>",
       "__global__ void k(const int* in, int* out) { int4* o = (int4*)out + threadIdx.x; int4 v = *o; v.x += "
       "1; "
       "v.w += 2; *o = v; }",
       [](int i) {
         return i >= 128 ? 0 : i % 4 == 0 ? 8 : i % 4 == 3 ? 16 : 0;
       }},
      {"a sum by a reference in a function", "<<<8, 32>>>",
       "__device__ void add(int& to, int v) { to += v; }\n__global__ void k(const int* in, int* out) { "
       "add(out[threadIdx.x], 3); }",
       [](int i) { return i < 32 ? 24 : 0; }},
      {"counts of bytes", "<<<1, 128>>>",
       "__global__ void k(const int* in, int* out) { __shared__ unsigned char n[4]; int t = threadIdx.x; if "
       "(t < "
       "4) n[t] = 0; __syncthreads(); ++n[t % 4]; __syncthreads(); if (t < 4) out[t] = n[t]; }",
       [](int i) { return i < 4 ? 32 : 0; }},
      {"sums of doubles in a struct", "<<<6, 32>>>",
       "struct Sum { double v; };\n__device__ Sum sums[32];\n__global__ void k(const int* in, int* out) { "
       "int t = "
       "threadIdx.x; if (blockIdx.x == 0) sums[t].v = 0; sums[t].v += 1; out[t] = (int)sums[t].v; }",
       [](int i) { return i < 32 ? 6 : 0; }},
      {"two buffers that are exchanged without a barrier", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int a[2][256]; int t = threadIdx.x; a[0][t] "
       "= t; "
       "__syncthreads(); for (int r = 0; r < 8; ++r) a[(r + 1) % 2][t] = a[r % 2][(t + 1) % 256]; "
       "__syncthreads(); out[t] = a[0][t]; }",
       [](int i) { return i < 256 ? (i + 8) % 256 : 0; }},
      {"a lane's value in shared memory without __syncwarp", "<<<2, 64>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[2]; int t = threadIdx.x; if (t % 32 == "
       "0) "
       "s[t / 32] = in[t] + 1; out[blockIdx.x * 64 + t] = s[t / 32]; }",
       [](int i) { return i < 128 ? i % 64 / 32 * 32 + 1 : 0; }},
      {"blocks that read behind their own part", "<<<8, 64>>> cooperative",
       "__device__ int g[513];\n__global__ void k(const int* in, int* out) { int i = blockIdx.x * 64 + "
       "threadIdx.x; "
       "g[i] = in[i]; __syncthreads(); out[i] = i < 511 ? g[i + 1] : 0; g[i] = 0; }",
       [](int i) { return i < 511 ? i + 1 : 0; }},
  };
  return all;
}

// Waits, atomics and what blocks do one after the other.
const std::vector<Row>& right() {
  static const std::vector<Row> all = {
      {"a tree in shared memory", "<<<4, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[256]; int t = threadIdx.x; s[t] = "
       "in[blockIdx.x * 256 + t]; __syncthreads(); for (int h = 128; h > 0; h /= 2) { if (t < h) s[t] += s[t "
       "+ "
       "h]; __syncthreads(); } if (t == 0) out[blockIdx.x] = s[0]; }",
       [](int i) { return i < 4 ? row_sum(i * 256, 256) : 0; }},
      {"sums by atomics", "<<<16, 64>>>",
       "__global__ void k(const int* in, int* out) { atomicAdd(&out[0], in[blockIdx.x * 64 + threadIdx.x]); "
       "}",
       [](int i) { return i == 0 ? row_sum(0, 1024) : 0; }},
      {"a sum of floats by atomics, an exchange and a comparison", "<<<4, 64>>>",
       "__device__ float sum;\n__device__ int best;\n__global__ void k(const int* in, int* out) { "
       "atomicAdd(&sum, "
       "1.f); atomicMax(&best, (int)threadIdx.x); __threadfence(); if (atomicAdd(&out[1], 1) == 255) { "
       "out[0] = "
       "(int)atomicExch(&sum, 0.f) + atomicExch(&best, 0); out[1] = 0; } }",
       [](int i) { return i == 0 ? 256 + 63 : 0; }},
      {"the last block finishes the work", "<<<8, 32>>>",
       "__device__ unsigned count;\n__global__ void k(const int* in, int* out) { __shared__ bool last; int t "
       "= "
       "threadIdx.x; if (t == 0) { out[blockIdx.x] = blockIdx.x; __threadfence(); last = atomicInc(&count, "
       "7) "
       "== 7; } __syncthreads(); if (last && t == 0) { int s = 0; for (int j = 0; j < 8; ++j) s += out[j]; "
       "out[8] = s; } }",
       [](int i) { return i < 8    ? i
                          : i == 8 ? 28
                                   : 0; }},
      {"a block waits for the one before it", "<<<64, 32>>>",
       "__device__ volatile int ready[65];\n__global__ void k(const int* in, int* out) { if (threadIdx.x == "
       "0) "
       "{ int b = blockIdx.x, v = 0; if (b > 0) { while (ready[b - 1] == 0); v = ((volatile int*)out)[b - "
       "1]; "
       "ready[b - 1] = 0; } out[b] = v + 1; __threadfence(); ready[b] = b < 63; } }",
       [](int i) { return i < 64 ? i + 1 : 0; }},
      {"a block waits for the one before it by atomics", "<<<64, 32>>>",
       "__device__ int ready[65];\n__global__ void k(const int* in, int* out) { if (threadIdx.x == 0) "
       "{ int b = blockIdx.x; if (b > 0) while (atomicCAS(&ready[b - 1], 1, 0) == 0); out[b] = b; "
       "__threadfence(); if (b < 63) atomicExch(&ready[b], 1); } }",
       [](int i) { return i < 64 ? i : 0; }},
      {"a lock", "<<<8, 32>>>",
       "__device__ int lock;\n__global__ void k(const int* in, int* out) { if (threadIdx.x == 0) { while "
       "(atomicCAS(&lock, 0, 1) != 0); __threadfence(); *(volatile int*)out += 1; __threadfence(); "
       "atomicExch(&lock, 0); } }",
       [](int i) { return i == 0 ? 8 : 0; }},
      {"tickets in place of block numbers", "<<<32, 32>>>",
       "__device__ unsigned next;\n__global__ void k(const int* in, int* out) { __shared__ unsigned b; if "
       "(threadIdx.x == 0) b = atomicInc(&next, 31); __syncthreads(); out[b * 32 + threadIdx.x] = b; }",
       [](int i) { return i / 32; }},
      {"warps on their own", "<<<2, 128>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[128]; int t = threadIdx.x; for (int r "
       "= 0; "
       "r < 3; ++r) { s[t] = in[t] + r; __syncwarp(); int v = s[t ^ 1]; __syncwarp(); if (r == 2) "
       "out[blockIdx.x * 128 + t] = __shfl_xor_sync(~0u, v, 2); } }",
       [](int i) { return i < 256 ? (i % 128 ^ 3) + 2 : 0; }},
      {"a vote and early returns", "<<<2, 96>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; if (t >= 80) return; int n = "
       "__syncthreads_count(t % 2); unsigned b = __ballot_sync(t < 64 ? ~0u : 0xffffu, t % 4 == 0); "
       "out[blockIdx.x * 96 + t] = n * 100 + __popc(b); }",
       [](int i) { return i >= 192 || i % 96 >= 80 ? 0 : 4000 + (i % 96 < 64 ? 8 : 4); }},
      {"all write the same", "<<<4, 64>>>",
       "__global__ void k(const int* in, int* out) { out[0] = 7; if (threadIdx.x < 32) out[1 + blockIdx.x] = "
       "3; "
       "}",
       [](int i) { return i == 0  ? 7
                          : i < 5 ? 3
                                  : 0; }},
      {"grid sync", "<<<8, 32>>> cooperative",
       "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n__device__ int "
       "g[256];\n__global__ void k(const int* in, int* "
       "out) { "
       "int i = blockIdx.x * 32 + threadIdx.x; g[i] = in[i]; cg::this_grid().sync(); int v = g[255 - i]; "
       "cg::this_grid().sync(); g[i] = v + 1; cg::this_grid().sync(); out[i] = g[255 - i]; }",
       [](int i) { return i < 256 ? i + 1 : 0; }},
      {"structs, bytes and vectors", "<<<4, 64>>>",
       "struct Pair { int a; short b; char c; };\n__global__ void k(const int* in, int* out) { int i = "
       "blockIdx.x * 64 + threadIdx.x; int4 v = ((const int4*)in)[i]; Pair p = {v.x, (short)v.y, (char)(v.z "
       "% "
       "100)}; __shared__ Pair s[64]; s[threadIdx.x] = p; __syncthreads(); Pair q = s[threadIdx.x ^ 1]; "
       "((int4*)out)[i ^ 1] = make_int4(q.a, q.b, q.c, v.w - 4 * (i - (i ^ 1))); }",
       [](int i) { return i % 4 == 2 ? i % 100 : i; }},
      {"a block of one thread", "<<<1024, 1>>>",
       "__global__ void k(const int* in, int* out) { out[blockIdx.x] = in[blockIdx.x]; }",
       [](int i) { return i; }},
      {"a grid in three dimensions", "<<<dim3(4, 2, 2), dim3(4, 4, 4)>>>",
       "__global__ void k(const int* in, int* out) { int b = blockIdx.x + 4 * (blockIdx.y + 2 * blockIdx.z); "
       "int t = threadIdx.x + 4 * (threadIdx.y + 4 * threadIdx.z); out[b * 64 + t] = in[b * 64 + t]; }",
       [](int i) { return i; }},
  };
  return all;
}

// By order (schedule.h), the first element that is wrong there.
std::vector<int> wrong_in(const Row& row) {
  const Outcome outcome = run(row, true);
  EXPECT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
  std::vector<int> wrong;
  for (const auto& outputs : outcome.mixed_outputs) wrong.push_back(first_wrong(row, outputs.at("out")));
  return wrong;
}

TEST(MixedOrder, RacesShow) {
  for (const Row& row : racing()) {
    SCOPED_TRACE(row.name);
    const std::vector<int> wrong = wrong_in(row);
    EXPECT_TRUE(std::any_of(wrong.begin(), wrong.end(), [](int i) { return i >= 0; }));
  }
}

TEST(MixedOrder, RightProgramsStayRight) {
  for (const Row& row : right()) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(wrong_in(row), std::vector<int>(kMixedOrders, -1));
  }
}

}  // namespace
}  // namespace warpsmith::device

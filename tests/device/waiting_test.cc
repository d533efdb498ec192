// Barriers, warps and cooperative groups on the CPU twin behave as on a GPU with 32 lanes.
#include <gtest/gtest.h>

#include <numeric>

#include "twin_fixture.h"

namespace warpsmith::device {
namespace {

struct Row {
  const char* name;
  const char* launch;  // "<<<grid, block, smem>>> …"
  const char* code;    // `in` holds 0…255, `out` is int[256]; a function k(const int* in, int* out)
  std::function<int(int)> expected;
  Verdict verdict = Verdict::kOk;
  const char* detail = "";
};

void expect(const Row& row, const std::map<std::string, std::vector<std::byte>>& outputs) {
  const std::vector<int> out = values<int>(outputs.at("out"));
  for (int i = 0; i < 256; ++i)
    ASSERT_EQ(out[static_cast<std::size_t>(i)], row.expected(i)) << "element " << i;
}

void check(const Row& row, int threads, bool mixed) {
  SCOPED_TRACE(row.name);
  Case c;
  c.source = std::string("// plan: fill out 0\n// plan: launch k") + row.launch + "\n" + row.code;
  const std::size_t arguments = c.source.find(">>>") + 3;
  c.source.insert(arguments, "(in, out)");
  std::vector<int> in(256);
  std::iota(in.begin(), in.end(), 0);
  c.inputs["in"] = tensor(in);
  c.outputs["out"] = tensor(std::vector<int>(256));
  c.threads = threads;
  c.mixed = mixed;
  const Outcome outcome = run_case(c);
  ASSERT_EQ(outcome.verdict, row.verdict) << outcome.detail;
  EXPECT_NE(outcome.detail.find(row.detail), std::string::npos) << outcome.detail;
  if (row.verdict != Verdict::kOk) return;
  if (!mixed) return expect(row, outcome.outputs);
  for (const auto& outputs : outcome.mixed_outputs) expect(row, outputs);
}

int lane(int i) { return i % 32; }

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"reverse through static shared memory", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[256]; int t = threadIdx.x; s[t] = "
       "in[t]; __syncthreads(); out[t] = s[255 - t]; }",
       [](int i) { return 255 - i; }},
      {"dynamic shared memory", "<<<1, 256, 1024>>>",
       "__global__ void k(const int* in, int* out) { extern __shared__ int s[]; int t = threadIdx.x; s[t] = "
       "in[t]; __syncthreads(); out[t] = s[t ^ 1]; }",
       [](int i) { return i ^ 1; }},
      {"static and dynamic shared memory are apart", "<<<1, 256, 1024>>>",
       "__global__ void k(const int* in, int* out) { extern __shared__ __align__(16) int s[]; __shared__ int "
       "a[16][16], b; int t = threadIdx.x; s[t] = in[t]; a[t / 16][t % 16] = 1000; if (t == 0) b = 5; "
       "__syncthreads(); out[t] = s[t] + a[t % 16][t / 16] + b; }",
       [](int i) { return i + 1005; }},
      {"shared memory declared at file scope", "<<<1, 256, 1024>>>",
       "extern __shared__ int dyn[];\n__shared__ int fixed[256];\n__device__ int get(int i) { return "
       "fixed[i] + dyn[i]; }\n__global__ void k(const int* in, int* out) { int t = threadIdx.x; fixed[t] = "
       "in[t]; dyn[t] = 1; __syncthreads(); out[t] = get(255 - t); }",
       [](int i) { return 256 - i; }},
      {"tree in a uniform loop", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[256]; int t = threadIdx.x; s[t] = "
       "in[t]; __syncthreads(); for (int h = 128; h > 0; h /= 2) { if (t < h) s[t] += s[t + h]; "
       "__syncthreads(); } out[t] = s[0]; }",
       [](int) { return 255 * 128; }},
      {"early return before a barrier counts as arrived", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s; int t = threadIdx.x; if (t >= 200) "
       "return; if (t == 7) s = 42; __syncthreads(); out[t] = s; }",
       [](int i) { return i < 200 ? 42 : 0; }},
      {"barrier inside a loop with a thread-dependent count", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { int n = 0; for (int i = 0; i <= (int)threadIdx.x / 64; "
       "++i) { __syncthreads(); ++n; } out[threadIdx.x] = n; }",
       [](int i) { return i / 64 + 1; }},
      {"syncthreads_count, and, or", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; int c = __syncthreads_count(t < "
       "10); int a = __syncthreads_and(t >= 0); int b = __syncthreads_and(t > 0); int o = __syncthreads_or(t "
       "== 255); int p = __syncthreads_or(0); out[t] = c * 10000 + a * 1000 + b * 100 + o * 10 + p; }",
       [](int) { return 101010; }},
      {"shfl_down", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; out[t] = "
       "__shfl_down_sync(0xffffffff, in[t], 4); }",
       [](int i) { return lane(i) < 28 ? i + 4 : i; }},
      {"shfl_up with width 8", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; out[t] = "
       "__shfl_up_sync(0xffffffff, in[t], 3, 8); }",
       [](int i) { return i % 8 >= 3 ? i - 3 : i; }},
      {"shfl_xor", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; out[t] = __shfl_xor_sync(~0u, "
       "in[t], 5); }",
       [](int i) { return i ^ 5; }},
      {"shfl from one lane, width 16, wraps", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; out[t] = __shfl_sync(~0u, in[t], "
       "18, 16); }",
       [](int i) { return i / 16 * 16 + 2; }},
      {"shuffle of a double and of a half", "<<<1, 256>>>",
       "#include <cuda_fp16.h>\n__global__ void k(const int* in, int* out) { int t = threadIdx.x; double d = "
       "__shfl_xor_sync(~0u, "
       "(double)in[t] + 0.5, 1); __half h = __shfl_xor_sync(~0u, __float2half((float)(t % 32)), 2); out[t] = "
       "(int)(d * 2) + 1000 * (int)__half2float(h); }",
       [](int i) { return 2 * (i ^ 1) + 1 + 1000 * ((i ^ 2) % 32); }},
      {"warp sum in a device function", "<<<2, 128>>>",
       "__device__ int sum(int v) { for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o); "
       "return v; }\n__global__ void k(const int* in, int* out) { int i = blockIdx.x * blockDim.x + "
       "threadIdx.x; out[i] = sum(in[i]); }",
       [](int i) { return 32 * (i / 32 * 32) + 496; }},
      {"block sum by a template with shared memory", "<<<1, 256>>>",
       "template <typename T, int N> __device__ T block_sum(T v) { __shared__ T part[N / 32]; for (int o = "
       "16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o); if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] "
       "= v; __syncthreads(); T s = 0; for (int i = 0; i < N / 32; ++i) s += part[i]; __syncthreads(); "
       "return s; }\n__global__ void k(const int* in, int* out) { int a = block_sum<int, "
       "256>(in[threadIdx.x]); float b = block_sum<float, 256>(1.f); out[threadIdx.x] = a + (int)b; }",
       [](int) { return 255 * 128 + 256; }},
      {"shuffles in both arms of a branch", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x, l = t % 32; int v = in[t]; if (l < "
       "16) v = __shfl_xor_sync(0x0000ffff, v, 1); else v = __shfl_xor_sync(0xffff0000, v, 2); out[t] = v; }",
       [](int i) { return lane(i) < 16 ? i ^ 1 : i ^ 2; }},
      {"shuffle by the first warp alone", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; int v = 0; if (t / 32 == 0) v = "
       "__shfl_sync(~0u, in[t], 9); __syncthreads(); out[t] = v; }",
       [](int i) { return i < 32 ? 9 : 0; }},
      {"shuffle whose mask names lanes that returned", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; if (t % 32 >= 20) return; int v = "
       "__shfl_down_sync(~0u, in[t], 1); if (t % 32 < 19) out[t] = v; }",
       [](int i) { return lane(i) >= 19 ? 0 : i + 1; }},
      {"shuffle whose mask names lanes that wait elsewhere", "<<<1, 32>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; if (t < 16) out[t] = "
       "__shfl_xor_sync(~0u, in[t], 1); __syncthreads(); }",
       nullptr, Verdict::kUnsupported, "divergent"},
      {"a mask without the calling lane", "<<<1, 32>>>",
       "__global__ void k(const int* in, int* out) { out[threadIdx.x] = __shfl_xor_sync(0xffff, "
       "in[threadIdx.x], 1); }",
       nullptr, Verdict::kUnsupported, "mask"},
      {"votes", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; unsigned b = __ballot_sync(~0u, "
       "in[t] % 2); int any = __any_sync(~0u, t == 40), all = __all_sync(~0u, t >= 32); out[t] = (b == "
       "0xaaaaaaaau) + 10 * any + 100 * all; }",
       [](int i) { return 1 + 10 * (i / 32 == 1) + 100 * (i >= 32); }},
      {"activemask in uniform code", "<<<1, 48>>>",
       "__global__ void k(const int* in, int* out) { out[threadIdx.x] = __popc(__activemask()); }",
       [](int i) { return i < 32   ? 32
                          : i < 48 ? 16
                                   : 0; }},
      {"activemask in a branch", "<<<1, 64>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; if (t % 4 == 0) { unsigned m = "
       "__activemask(); out[t] = (int)__popc(m) + __shfl_xor_sync(m, t, 4); } }",
       [](int i) { return i < 64 && i % 4 == 0 ? 8 + (i ^ 4) : 0; }},
      {"syncwarp orders shared memory", "<<<1, 64>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[64]; int t = threadIdx.x; s[t] = "
       "in[t]; __syncwarp(); out[t] = s[t ^ 31]; __syncwarp(0xffffffff); }",
       [](int i) { return i < 64 ? i ^ 31 : 0; }},
      {"match_any", "<<<1, 32>>>",
       "__global__ void k(const int* in, int* out) { out[threadIdx.x] = __popc(__match_any_sync(~0u, "
       "(int)threadIdx.x / 10)); }",
       [](int i) { return i < 30   ? 10
                          : i < 32 ? 2
                                   : 0; }},
      {"reductions of a warp", "<<<1, 32>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; int v = t - 16; int a = "
       "__reduce_add_sync(~0u, v), b = __reduce_min_sync(~0u, v), c = __reduce_max_sync(~0u, v); unsigned o "
       "= __reduce_or_sync(~0u, 1u << (t % 4)), n = __reduce_and_sync(~0u, 3u | (unsigned)t), x = "
       "__reduce_xor_sync(~0u, (unsigned)t); out[t] = (a == -16) + 2 * (b == -16) + 4 * (c == 15) + 8 * (o "
       "== 15u) + 16 * (n == 3u) + 32 * (x == 0u); }",
       [](int i) { return i < 32 ? 63 : 0; }},
      {"last warp is short", "<<<1, 40>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.x; int v = 1; for (int o = 4; o; o /= "
       "2) v += __shfl_xor_sync(~0u, v, o); out[t] = v; }",
       [](int i) { return i < 40 ? 8 : 0; }},
      {"two-dimensional block: lanes count x first", "<<<1, dim3(16, 16)>>>",
       "__global__ void k(const int* in, int* out) { int t = threadIdx.y * 16 + threadIdx.x; out[t] = "
       "__shfl_sync(~0u, in[t], 0); }",
       [](int i) { return i / 32 * 32; }},
      {"cooperative groups: block and tile", "<<<1, 256>>>",
       "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n__global__ void k(const int* "
       "in, int* out) { __shared__ int s[256]; cg::thread_block b = cg::this_thread_block(); auto tile = "
       "cg::tiled_partition<8>(b); int t = b.thread_rank(); s[t] = in[t]; b.sync(); int v = s[255 - t]; for "
       "(int o = tile.size() / 2; o > 0; o /= 2) v += tile.shfl_down(v, o); out[t] = tile.thread_rank() == 0 "
       "? v : -1; }",
       [](int i) { return i % 8 ? -1 : 8 * (255 - i) - 28; }},
      {"cooperative groups: votes and reduce of a tile", "<<<1, 64>>>",
       "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
       "namespace cg = cooperative_groups;\n__global__ void k(const int* in, int* out) { auto tile = "
       "cg::tiled_partition<16>(cg::this_thread_block()); int t = threadIdx.x; out[t] = cg::reduce(tile, "
       "in[t], cg::plus<int>()) * 4 + tile.any(t == 3) * 2 + tile.all(t < 32) + 100000 * (int)(tile.ballot(t "
       "% 16 == 2) == 4u); }",
       [](int i) {
         return i < 64 ? (i / 16 * 256 + 120) * 4 + (i < 16 ? 2 : 0) + (i < 32 ? 1 : 0) + 100000 : 0;
       }},
      {"grid sync in a cooperative launch", "<<<8, 32>>> cooperative",
       "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n__device__ int "
       "g[256];\n__global__ void k(const int* in, int* out) { int i = blockIdx.x * 32 + threadIdx.x; g[i] = "
       "in[i]; cg::this_grid().sync(); int v = g[255 - i]; cg::this_grid().sync(); g[i] = v + 1; "
       "cg::this_grid().sync(); out[i] = g[255 - i]; }",
       [](int i) { return i + 1; }},
      {"grid sync in a plain launch", "<<<8, 32>>>",
       "#include <cooperative_groups.h>\n"
       "namespace cg = cooperative_groups;\n__global__ void k(const int* in, int* out) { "
       "cg::this_grid().sync(); out[blockIdx.x * 32 + threadIdx.x] = 1; }",
       nullptr, Verdict::kLaunchError, "cooperative"},
      {"a parameter that threads change", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { in += threadIdx.x; __syncthreads(); out[threadIdx.x] = "
       "*in; }",
       [](int i) { return i; }},
      {"variables, pointers and arrays that live across barriers", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[256]; const int t = threadIdx.x; const "
       "int* p = in + t; int a = *p, b[2] = {0}, c; float4 f = make_float4(1, 2, 3, 4); unsigned u = t; s[t] "
       "= a; __syncthreads(); c = s[(t + 1) % 256]; b[1] += c; __syncthreads(); s[t] = b[0] + b[1]; "
       "__syncthreads(); out[t] = *p + s[t] + (int)f.w + (int)u; }",
       [](int i) { return i + (i + 1) % 256 + 4 + i; }},
      {"barriers in nested uniform loops and branches", "<<<2, 128>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[128]; int t = threadIdx.x, i = "
       "blockIdx.x * 128 + t; int a = 0; for (int r = 0; r < 3; ++r) { for (int h = 1; h < 128; h *= 2) { "
       "s[t] = in[i] + r; __syncthreads(); a += s[t ^ h]; __syncthreads(); } if (blockIdx.x == 0) { s[t] = "
       "a; __syncthreads(); a = s[t]; } } out[i] = a; }",
       [](int i) {
         int a = 0;
         for (int r = 0; r < 3; ++r)
           for (int h = 1; h < 128; h *= 2) a += (i ^ h) + r;
         return a;
       }},
      {"a warp's sum in a branch, after some threads returned", "<<<1, 128>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[32]; int t = threadIdx.x; if (t >= 96) "
       "return; if (t < 32) s[t] = in[t]; __syncthreads(); int v = 0; if (t < 32) { v = s[t]; for (int h = "
       "16; h > 0; h /= 2) v += __shfl_down_sync(0xffffffff, v, h); } if (t % 32 == 0) out[t] = v; }",
       [](int i) { return i == 0 ? 496 : 0; }},
      {"a shuffle and its declaration", "<<<1, 64>>>",
       "__global__ void k(const int* in, int* out) { int a = in[threadIdx.x]; int b = __shfl_xor_sync(~0u, a "
       "* 2, 3) + __shfl_down_sync(~0u, a, 1); out[threadIdx.x] = a + b; }",
       [](int i) { return i >= 64 ? 0 : i + 2 * (i ^ 3) + (lane(i) < 31 ? i + 1 : i); }},
      {"a lambda sees its thread", "<<<1, 256>>>",
       "__global__ void k(const int* in, int* out) { auto f = [&](int v) { return v + (int)threadIdx.x; }; "
       "auto g = [](int v) { return v * 2; }; auto h = [in] { return in[threadIdx.x]; }; out[threadIdx.x] = "
       "f(1) + g(3) + h(); }",
       [](int i) { return 2 * i + 7; }},
      {"last block finishes the work", "<<<8, 32>>>",
       "__device__ unsigned count;\n__device__ int total;\n__global__ void k(const int* in, int* out) { "
       "__shared__ bool last; int i = blockIdx.x * 32 + threadIdx.x; atomicAdd(&total, in[i]); "
       "__threadfence(); __syncthreads(); if (threadIdx.x == 0) last = atomicInc(&count, gridDim.x - 1) == "
       "gridDim.x - 1; __syncthreads(); if (last) for (int j = threadIdx.x; j < 256; j += 32) out[j] = "
       "total; __syncthreads(); if (last && threadIdx.x == 0) total = 0; }",
       [](int) { return 255 * 128; }},
      {"shared memory carries nothing from an earlier launch", "<<<4, 64>>>",
       "__global__ void k(const int* in, int* out) { __shared__ int s[64]; int i = blockIdx.x * 64 + "
       "threadIdx.x; if (blockIdx.x == 0) out[i] = s[threadIdx.x] == -1 ? 5 : s[threadIdx.x]; else out[i] = "
       "5; __syncthreads(); s[threadIdx.x] = 1; }",
       [](int) { return 5; }},
  };
  return all;
}

TEST(Waiting, BlocksInTurn) {
  for (const Row& row : rows()) check(row, 1, false);
}

TEST(Waiting, BlocksOnThreeThreads) {
  for (const Row& row : rows()) check(row, 3, false);
}

TEST(Waiting, InOtherOrders) {
  for (const Row& row : rows()) check(row, 1, true);
}

}  // namespace
}  // namespace warpsmith::device

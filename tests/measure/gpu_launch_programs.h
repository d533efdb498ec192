// One small program for each way to launch, and each layout of inputs, that no candidate of datasets/ uses,
// its task, and what makes it wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "warpsmith/task/launch_plan.h"

namespace warpsmith::measure {

struct LaunchProgram {
  std::string name, task, source;
  std::string right, wrong;  // a piece of the source that is there once, and what its wrong twin has instead
  bool hopper;               // wants compute capability 9.0
  bool on_twin;              // the CPU twin runs it as well
  bool (*uses)(const task::ConcretePlan&);  // the plan at the timing shape is what the name says

  std::string wrong_twin() const {
    const std::size_t at = source.find(right);
    if (at == std::string::npos || source.find(right, at + 1) != std::string::npos)
      throw std::logic_error("`" + right + "` is not once in " + name);
    return std::string(source).replace(at, right.size(), wrong);
  }
};

inline void PrintTo(const LaunchProgram& program, std::ostream* out) { *out << program.name; }

// `shapes`: what stands below `timing:`, and the rest.
inline std::string launch_task(const std::string& dims, const std::string& tensors,
                               const std::string& reference, const std::string& shapes) {
  return "schema: warpsmith.task/1\ntitle: for a way to launch\nlevel: 1\nsplit: extra\nops: [launch]\n"
         "dims: [" +
         dims + "]\n" + tensors + "reference: |\n" + reference + "timing:\n" + shapes;
}

inline bool has_step(const task::ConcretePlan& plan, bool (*is)(const task::ConcreteStep&)) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), is);
}

inline constexpr const char* kRowsToRows =
    "inputs:\n"
    "  x: {role: data, dtype: float32, shape: [M, N], values: \"normal(0, 1)\"}\n"
    "outputs:\n"
    "  out: {dtype: float32, shape: [M, N]}\n";
inline constexpr const char* kLineToLine =
    "inputs:\n"
    "  x: {role: data, dtype: float32, shape: [N], values: \"normal(1, 1)\"}\n"
    "outputs:\n"
    "  out: {dtype: float32, shape: [N]}\n";

// Every block writes what all read behind the barrier of the grid.
inline LaunchProgram cooperative_program() {
  return {"cooperative",
          launch_task("N", kLineToLine,
                      "  def forward(x: Tensor) -> Tensor:\n"
                      "    return x - x.mean()\n",
                      "  - {N: 100000}\nhidden:\n  - {N: 1000}\n  - {N: 1}\n"),
          R"(// plan: let B = min(cdiv(N, 256), SMS)
// plan: temp sums float32[B]
// plan: launch centre<<<B, 256>>>(x, sums, out, N) cooperative
#include <cooperative_groups.h>
__global__ void centre(const float* x, float* sums, float* out, int N) {
  __shared__ float part[256];
  float sum = 0.f;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256) sum += x[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int n = 128; n > 0; n /= 2) {
    if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
  cooperative_groups::this_grid().sync();
  float all = 0.f;
  for (int b = 0; b < gridDim.x; b++) all += sums[b];
  for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256) out[i] = x[i] - all / N;
}
)",
          "b < gridDim.x;",
          "b + 1 < gridDim.x;",
          false,
          true,
          [](const task::ConcretePlan& plan) {
            return has_step(plan, [](const task::ConcreteStep& s) { return s.cooperative && s.grid[0] > 1; });
          }};
}

// The two blocks of a cluster share a row, and read each other's shared memory.
inline LaunchProgram cluster_program() {
  return {"cluster",
          launch_task("M, N", kRowsToRows,
                      "  def forward(x: Tensor) -> Tensor:\n"
                      "    return x - x.amax(1, keepdim=True)\n",
                      "  - {M: 64, N: 1000}\nhidden:\n  - {M: 3, N: 129}\n  - {M: 1, N: 1}\n"),
          R"(// plan: launch below_max<<<dim3(2, M), 128>>>(x, out, N) cluster(2, 1, 1)
#include <cooperative_groups.h>
__global__ void below_max(const float* x, float* out, int N) {
  __shared__ float part[128];
  auto cluster = cooperative_groups::this_cluster();
  const int first = cluster.block_rank() * 128 + threadIdx.x;
  x += (size_t)blockIdx.y * N;
  out += (size_t)blockIdx.y * N;
  float most = -INFINITY;
  for (int i = first; i < N; i += 256) most = fmaxf(most, x[i]);
  part[threadIdx.x] = most;
  __syncthreads();
  for (int n = 64; n > 0; n /= 2) {
    if (threadIdx.x < n) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + n]);
    __syncthreads();
  }
  cluster.sync();  // the other one's is there
  const float* others = cluster.map_shared_rank(part, cluster.block_rank() ^ 1);
  most = fmaxf(part[0], others[0]);
  cluster.sync();  // and stays until it has been read
  for (int i = first; i < N; i += 256) out[i] = x[i] - most;
}
)",
          "block_rank() ^ 1",
          "block_rank() ^ 0",
          true,
          false,
          [](const task::ConcretePlan& plan) {
            return has_step(plan, [](const task::ConcreteStep& s) { return s.cluster[0] == 2; });
          }};
}

// The second kernel may begin at once, and waits for what the first has written.
inline LaunchProgram pdl_program() {
  return {"pdl",
          launch_task("N", kLineToLine,
                      "  def forward(x: Tensor) -> Tensor:\n"
                      "    return torch.flip(x * 2.0 + 1.0, [0])\n",
                      "  - {N: 100000}\nhidden:\n  - {N: 333}\n  - {N: 1}\n"),
          R"(// plan: temp t float32[N]
// plan: launch first<<<cdiv(N, 256), 256>>>(x, t, N)
// plan: launch second<<<cdiv(N, 256), 256>>>(t, out, N) pdl
__global__ void first(const float* x, float* t, int N) {
  asm volatile("griddepcontrol.launch_dependents;");
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) t[i] = x[i] * 2.f;
}
__global__ void second(const float* t, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (i < N) out[N - 1 - i] = t[i] + 1.f;
}
)",
          "t[i] + 1.f",
          "t[i] + 1.01f",
          true,
          false,
          [](const task::ConcretePlan& plan) {
            return has_step(plan, [](const task::ConcreteStep& s) { return s.pdl; });
          }};
}

// 64 KB and 78 KB of dynamic shared memory, which also count for blocks_per_sm.
inline LaunchProgram shared_memory_program() {
  return {"shared_memory",
          launch_task("M, N", kRowsToRows,
                      "  def forward(x: Tensor) -> Tensor:\n"
                      "    return torch.flip(x, [1])\n",
                      "  - {M: 64, N: 16384}\nhidden:\n  - {M: 3, N: 20001}\n  - {M: 1, N: 1}\n"),
          R"(// plan: let B = min(M, SMS * blocks_per_sm(flip, 256, 4 * N))
// plan: launch flip<<<B, 256, 4 * N>>>(x, out, M, N)
__global__ void flip(const float* x, float* out, int M, int N) {
  extern __shared__ float row[];
  for (int m = blockIdx.x; m < M; m += gridDim.x) {
    for (int i = threadIdx.x; i < N; i += 256) row[i] = x[(size_t)m * N + i];
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += 256) out[(size_t)m * N + i] = row[N - 1 - i];
    __syncthreads();
  }
}
)",
          "row[N - 1 - i]",
          "row[i]",
          false,
          true,
          [](const task::ConcretePlan& plan) {
            return has_step(plan, [](const task::ConcreteStep& s) { return s.smem > 48 * 1024; });
          }};
}

// Tiles of 32 x 32 floats, brought by one thread and laid out in 128 bytes with their pieces of 16 swapped.
inline LaunchProgram tensor_map_program() {
  return {"tensor_map",
          launch_task("M, N", kRowsToRows,
                      "  def forward(x: Tensor) -> Tensor:\n"
                      "    return x * 2.0\n",
                      "  - {M: 256, N: 512}\nhidden:\n  - {M: 3, N: 36}\n  - {M: 33, N: 4}\n"),
          R"(// plan: tensormap tiles = x tile[32, 32] swizzle128
// plan: launch twice<<<dim3(cdiv(N, 32), cdiv(M, 32)), 256>>>(tiles, out, M, N)
#include <cuda.h>
__global__ void twice(const __grid_constant__ CUtensorMap tiles, float* out, int M, int N) {
  __shared__ alignas(1024) float tile[32 * 32];
  __shared__ alignas(8) unsigned long long arrived;
  const unsigned to = (unsigned)__cvta_generic_to_shared(tile);
  const unsigned barrier = (unsigned)__cvta_generic_to_shared(&arrived);
  const int column = blockIdx.x * 32, row = blockIdx.y * 32;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    // All of its bytes arrive, those beside x as zeros.
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(32 * 32 * 4)
                 : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
        "%3}], [%4];" ::"r"(to), "l"(&tiles), "r"(column), "r"(row), "r"(barrier)
        : "memory");
  }
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(0)
        : "memory");
  for (int i = threadIdx.x; i < 32 * 32; i += 256) {
    int r = row + i / 32, c = column + i % 32;
    int at = i * 4;
    at ^= at >> 3 & 0x70;  // pieces of 16 bytes by the row within 8
    if (r < M && c < N) out[(size_t)r * N + c] = 2.f * *(const float*)((const char*)tile + at);
  }
}
)",
          "at >> 3 & 0x70",
          "at >> 3 & 0x30",
          true,
          false,
          [](const task::ConcretePlan& plan) {
            return plan.tensor_maps.size() == 1 && plan.tensor_maps[0].swizzle == 128 &&
                   plan.steps.at(0).args.at(0).kind == task::ArgKind::kTensorMap;
          }};
}

// Two kernels of one template, by their names.
inline LaunchProgram template_program() {
  return {"template",
          launch_task("M, N",
                      "inputs:\n"
                      "  x: {role: data, dtype: float32, shape: [M, N], values: \"normal(0, 1)\"}\n"
                      "outputs:\n"
                      "  out: {dtype: float32, shape: [M]}\n",
                      "  def forward(x: Tensor) -> Tensor:\n"
                      "    return x.sum(1)\n",
                      "  - {M: 64, N: 1000}\nhidden:\n  - {M: 3, N: 33}\n  - {M: 1, N: 1}\n"),
          R"(// plan: if N > 256
// plan: launch row<float, 256><<<M, 256>>>(x, out, N)
// plan: else
// plan: launch row<float, 32><<<M, 32>>>(x, out, N)
// plan: end
template <typename T, int B>
__global__ void row(const T* x, T* out, int N) {
  __shared__ T part[B];
  T sum = 0;
  for (int i = threadIdx.x; i < N; i += B) sum += x[(size_t)blockIdx.x * N + i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int n = B / 2; n > 0; n /= 2) {
    if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
)",
          "i += B)",
          "i += B + 1)",
          false,
          true,
          [](const task::ConcretePlan& plan) {
            return has_step(plan, [](const task::ConcreteStep& s) { return s.kernel == "row<float, 256>"; });
          }};
}

inline LaunchProgram constant_program() {
  return {"constant",
          launch_task("M, N",
                      "inputs:\n"
                      "  x: {role: data, dtype: float32, shape: [M, N], values: \"normal(0, 1)\"}\n"
                      "  w: {role: parameter, dtype: float32, shape: [N], values: \"normal(0, 1)\"}\n"
                      "outputs:\n"
                      "  out: {dtype: float32, shape: [M, N]}\n",
                      "  def forward(x: Tensor, w: Tensor) -> Tensor:\n"
                      "    return x * w\n",
                      "  - {M: 64, N: 1000}\nhidden:\n  - {M: 3, N: 33}\n  - {M: 1, N: 1}\n"),
          R"(// plan: const W <- w
// plan: launch scale<<<cdiv(M * N, 256), 256>>>(x, out, M, N)
__constant__ float W[1000];
__global__ void scale(const float* x, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = x[i] * W[i % N];
}
)",
          "// plan: const W <- w\n",
          "",
          false,
          true,
          [](const task::ConcretePlan& plan) {
            return has_step(plan, [](const task::ConcreteStep& s) {
              return s.kind == task::StepKind::kConst && s.destination == "W";
            });
          }};
}

// Ten launches that take turns with two temporaries, a copy before and one behind them.
inline LaunchProgram loop_program() {
  return {"loop",
          launch_task("M, N", kRowsToRows,
                      "  def forward(x: Tensor) -> Tensor:\n"
                      "    return x.cumsum(1)\n",
                      "  - {M: 64, N: 1000}\nhidden:\n  - {M: 3, N: 33}\n  - {M: 1, N: 1}\n"),
          R"(// plan: temp a float32[M, N]
// plan: temp b float32[M, N]
// plan: copy a <- x
// plan: for s in 0..clog2(N)
// plan:   if s % 2 == 0
// plan:     launch add<<<cdiv(M * N, 256), 256>>>(a, b, M, N, s)
// plan:   else
// plan:     launch add<<<cdiv(M * N, 256), 256>>>(b, a, M, N, s)
// plan:   end
// plan: end
// plan: if clog2(N) % 2 == 0
// plan:   copy out <- a
// plan: else
// plan:   copy out <- b
// plan: end
__global__ void add(const float* from, float* to, int M, int N, int s) {
  int i = blockIdx.x * 256 + threadIdx.x, back = 1 << s;
  if (i < M * N) to[i] = from[i] + (i % N >= back ? from[i - back] : 0.f);
}
)",
          "back = 1 << s",
          "back = 1 + s",
          false,
          true,
          [](const task::ConcretePlan& plan) {
            return std::count_if(plan.steps.begin(), plan.steps.end(), [](const task::ConcreteStep& s) {
                     return s.kind == task::StepKind::kLaunch;
                   }) == 10;
          }};
}

// Elements of 8 bytes whose halves differ, of temporaries and outputs; more of them than one call fills.
inline LaunchProgram fill_program() {
  return {"fill",
          launch_task("N",
                      "inputs:\n"
                      "  x: {role: data, dtype: float64, shape: [N], values: \"normal(0, 1)\"}\n"
                      "outputs:\n"
                      "  out0: {dtype: float64, shape: [N]}\n"
                      "  out1: {dtype: float64, shape: [N]}\n"
                      "  out2: {dtype: int64, shape: [N]}\n",
                      "  def forward(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:\n"
                      "    i = torch.arange(x.size(0), device=x.device)\n"
                      "    even = i % 2 == 0\n"
                      "    a = torch.where(even, x, torch.full_like(x, 0.1))\n"
                      "    b = torch.where(even, x, torch.full_like(x, -float('inf')))\n"
                      "    return a, b, torch.where(even, i, torch.full_like(i, -5))\n",
                      "  - {N: 200001}\nhidden:\n  - {N: 32769}\n  - {N: 7}\n  - {N: 1}\n"),
          R"(// plan: temp t float64[N]
// plan: fill t -inf
// plan: fill out0 0.1
// plan: fill out2 -5
// plan: launch even<<<cdiv(N, 256), 256>>>(x, t, out0, out1, out2, N)
__global__ void even(const double* x, const double* t, double* out0, double* out1, long long* out2, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  out1[i] = i % 2 == 0 ? x[i] : t[i];
  if (i % 2 == 0) {
    out0[i] = x[i];
    out2[i] = i;
  }
}
)",
          "fill out2 -5",
          "fill out2 -6",
          false,
          true,
          [](const task::ConcretePlan& plan) {
            return std::count_if(plan.steps.begin(), plan.steps.end(), [](const task::ConcreteStep& s) {
                     return s.kind == task::StepKind::kFill;
                   }) == 3;
          }};
}

// Arguments of 2 and 8 bytes; a third is 0.333251953125 in half precision.
inline LaunchProgram argument_program() {
  return {
      "argument",
      launch_task("N", kLineToLine,
                  "  def forward(x: Tensor) -> Tensor:\n"
                  "    return x * 0.333251953125 + 0.25\n",
                  "  - {N: 100000}\nhidden:\n  - {N: 333}\n  - {N: 1}\n"),
      R"(// plan: launch line<<<cdiv(N, 256), 256>>>(x, f16(1.0 / 3), out, f64(1.0 / 4), i64(N))
#include <cuda_fp16.h>
__global__ void line(const float* x, __half a, float* out, double b, long long n) {
  long long i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) out[i] = x[i] * __half2float(a) + (float)b;
}
)",
      "f16(1.0 / 3)",
      "f16(1.0 / 3.01)",
      false,
      true,
      [](const task::ConcretePlan& plan) { return plan.steps.at(0).args.at(1).kind == task::ArgKind::kF16; }};
}

// Its input lies column by column, with a gap behind each.
inline LaunchProgram strided_program() {
  return {
      "strided",
      launch_task(
          "M, N",
          "inputs:\n"
          "  x: {role: data, dtype: float32, shape: [M, N], strides: [1, M + 3], values: \"normal(0, 1)\"}\n"
          "outputs:\n"
          "  out: {dtype: float32, shape: [M, N]}\n",
          "  def forward(x: Tensor) -> Tensor:\n"
          "    return x * 2 + 1\n",
          "  - {M: 100, N: 1000}\nhidden:\n  - {M: 3, N: 33}\n  - {M: 7, N: 2}\n"),
      R"(// plan: launch line<<<cdiv(M * N, 256), 256>>>(x, out, M, N, x.s0, x.s1)
__global__ void line(const float* x, float* out, int M, int N, int s0, int s1) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = x[i / N * s0 + i % N * s1] * 2 + 1;
}
)",
      "i / N * s0 + i % N * s1",
      "i",
      false,
      true,
      [](const task::ConcretePlan& plan) { return plan.steps.size() == 1; }};
}

// Its input begins one element behind a boundary, so that it cannot be read four at a time.
inline LaunchProgram misaligned_program() {
  return {"misaligned",
          launch_task("N",
                      "inputs:\n"
                      "  x: {role: data, dtype: float32, shape: [N], offset: 1, values: \"normal(0, 1)\"}\n"
                      "outputs:\n"
                      "  out: {dtype: float32, shape: [N]}\n",
                      "  def forward(x: Tensor) -> Tensor:\n"
                      "    return x * 2 + 1\n",
                      "  - {N: 100000}\nhidden:\n  - {N: 333}\n  - {N: 4}\n"),
          R"(// plan: if aligned(x, 16) && N % 4 == 0
// plan:   launch four<<<cdiv(N / 4, 256), 256>>>(x, out, N / 4)
// plan: else
// plan:   launch one<<<cdiv(N, 256), 256>>>(x, out, N, 0)
// plan: end
__global__ void four(const float4* x, float4* out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  out[i] = make_float4(v.x * 2 + 1, v.y * 2 + 1, v.z * 2 + 1, v.w * 2 + 1);
}
__global__ void one(const float* x, float* out, int n, int before) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) out[i] = x[i - before] * 2 + 1;
}
)",
          "(x, out, N, 0)",
          "(x, out, N, 1)",  // as if it began at the boundary
          false,
          true,
          [](const task::ConcretePlan& plan) {
            return has_step(plan, [](const task::ConcreteStep& s) { return s.kernel == "one"; });
          }};
}

inline std::vector<LaunchProgram> launch_programs() {
  return {cooperative_program(), cluster_program(),  pdl_program(),      shared_memory_program(),
          tensor_map_program(),  template_program(), constant_program(), loop_program(),
          fill_program(),        argument_program(), strided_program(),  misaligned_program()};
}

}  // namespace warpsmith::measure

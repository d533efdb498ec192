// A candidate with a data race is not right, however right it is when threads run in ascending order.
#include <gtest/gtest.h>

#include "task_folder.h"
#include "warpsmith/measure/measurer.h"

namespace warpsmith::measure {
namespace {

constexpr const char* kRowSum = R"yaml(schema: warpsmith.task/1
title: Sum of each row
level: 1
split: train
ops: [row_sum]
dims: [M, N]
inputs:
  x: {role: data, dtype: float32, shape: [M, N], values: "normal(0, 1)"}
outputs:
  out: {dtype: float32, shape: [M]}
reference: |
  def forward(x: Tensor) -> Tensor:
    return x.sum(1)
timing:
  - {M: 64, N: 128}
hidden:
  - {M: 3, N: 1000}
  - {M: 1, N: 1}
  - {M: 33, N: 65}
  - {M: 130, N: 31}
flops: M * N
bytes: 4 * M * N + 4 * M
)yaml";

constexpr const char* kColumnSum = R"yaml(schema: warpsmith.task/1
title: Sum of each column
level: 1
split: train
ops: [column_sum]
dims: [M, N]
inputs:
  x: {role: data, dtype: float32, shape: [M, N], values: "normal(0, 1)"}
outputs:
  out: {dtype: float32, shape: [N]}
reference: |
  def forward(x: Tensor) -> Tensor:
    return x.sum(0)
timing:
  - {M: 64, N: 128}
hidden:
  - {M: 1000, N: 3}
  - {M: 1, N: 1}
  - {M: 65, N: 33}
flops: M * N
bytes: 4 * M * N + 4 * N
)yaml";

constexpr const char* kRunningSum = R"yaml(schema: warpsmith.task/1
title: Running sum of each row
level: 1
split: train
ops: [row_cumsum]
dims: [M, N]
inputs:
  x: {role: data, dtype: float32, shape: [M, N], values: "normal(0, 1)"}
outputs:
  out: {dtype: float32, shape: [M, N]}
reference: |
  def forward(x: Tensor) -> Tensor:
    return x.cumsum(1)
timing:
  - {M: 32, N: 128}
hidden:
  - {M: 3, N: 200}
  - {M: 1, N: 1}
  - {M: 33, N: 65}
flops: M * N
bytes: 8 * M * N
)yaml";

struct Row {
  const char* name;
  const char* source;
};

// In front of a body that says no other.
const char* const kHead = "extern \"C\" __global__ void k(const float* x, float* out, int M, int N)\n";

Measurement measured(const char* yaml, const Row& row) {
  const TaskFolder folder("sums", yaml);
  Settings settings = quick_settings();
  settings.timing = false;
  Measurer measurer(settings);
  std::string source = row.source;
  if (source.find("__global__") == std::string::npos) source.insert(source.find("\n{") + 1, kHead);
  const Candidate made = make_plan_candidate(folder.task().id, source, {});
  return measurer.measure(folder.task(), made, folder.compile(made)).measurement;
}

void expect_race(const char* yaml, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const Measurement m = measured(yaml, row);
    EXPECT_EQ(m.verdict, Verdict::kNondeterministic) << row.name << ": " << m.detail;
    EXPECT_NE(m.detail.find("data race"), std::string::npos) << row.name << ": " << m.detail;
  }
}

void expect_right(const char* yaml, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const Measurement m = measured(yaml, row);
    EXPECT_EQ(m.verdict, Verdict::kOk) << row.name << ": " << m.detail;
    EXPECT_EQ(m.detail, "") << row.name;
  }
}

TEST(RaceCheck, SumsOfRows) {
  expect_race(kRowSum,
              {{"the last thread reads without a barrier", R"(// plan: launch k<<<M, 128>>>(x, out, M, N)
{
  __shared__ float s[128];
  int t = threadIdx.x;
  float a = 0.f;
  for (int c = t; c < N; c += 128) a += x[blockIdx.x * N + c];
  s[t] = a;
  if (t == 127) {
    float v = 0.f;
    for (int i = 0; i < 128; i++) v += s[i];
    out[blockIdx.x] = v;
  }
})"},
               {"the last warp reads while others write the next row",
                R"(// plan: launch k<<<cdiv(M, 4), 256>>>(x, out, M, N)
{
  __shared__ float part[8];
  int t = threadIdx.x, lane = t & 31, w = t >> 5;
  for (int r = blockIdx.x * 4; r < min(M, (int)blockIdx.x * 4 + 4); r++) {
    float a = 0.f;
    for (int c = t; c < N; c += 256) a += x[r * N + c];
    for (int h = 16; h > 0; h >>= 1) a += __shfl_down_sync(0xffffffffu, a, h);
    if (lane == 0) part[w] = a;
    __syncthreads();
    if (w == 7) {
      float v = lane < 8 ? part[lane] : 0.f;
      for (int h = 4; h > 0; h >>= 1) v += __shfl_down_sync(0xffffffffu, v, h);
      if (lane == 0) out[r] = v;
    }
  }
})"},
               {"a plain sum of all threads", R"(// plan: launch k<<<M, 64>>>(x, out, M, N)
{
  __shared__ float s;
  if (threadIdx.x == 0) s = 0.f;
  __syncthreads();
  for (int c = threadIdx.x; c < N; c += 64) s += x[blockIdx.x * N + c];
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = s;
})"},
               {"one plain sum of each of two blocks", R"(// plan: fill out 0
// plan: launch k<<<dim3(M, 2), 128>>>(x, out, M, N)
{
  __shared__ float s[128];
  int t = threadIdx.x, half = (N + 1) / 2, from = blockIdx.y * half, to = min(N, from + half);
  float a = 0.f;
  for (int c = from + t; c < to; c += 128) a += x[blockIdx.x * N + c];
  s[t] = a;
  __syncthreads();
  for (int h = 64; h > 0; h >>= 1) {
    if (t < h) s[t] += s[t + h];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] += s[0];
})"}});
}

TEST(RaceCheck, SumsOfColumns) {
  expect_race(kColumnSum, {{"a plain sum of all blocks", R"(// plan: fill out 0
// plan: launch k<<<M, 128>>>(x, out, M, N)
{
  for (int c = threadIdx.x; c < N; c += 128) out[c] += x[blockIdx.x * N + c];
})"},
                           {"the last block adds what others may not have written",
                            R"(// plan: temp part float32[cdiv(M, 16), N]
// plan: launch k<<<cdiv(M, 16), 64>>>(x, out, part, M, N)
extern "C" __global__ void k(const float* x, float* out, float* part, int M, int N) {
  for (int c = threadIdx.x; c < N; c += 64) {
    float a = 0.f;
    for (int r = blockIdx.x * 16; r < min(M, (int)blockIdx.x * 16 + 16); r++) a += x[r * N + c];
    part[blockIdx.x * N + c] = a;
  }
  if (blockIdx.x == gridDim.x - 1)
    for (int c = threadIdx.x; c < N; c += 64) {
      float a = 0.f;
      for (int b = 0; b < gridDim.x; b++) a += part[b * N + c];
      out[c] = a;
    }
})"}});
}

TEST(RaceCheck, RunningSums) {
  expect_race(kRunningSum,
              {{"one thread an element", R"(// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, out, M, N)
{
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = (i % N == 0 ? 0.f : ((volatile float*)out)[i - 1]) + x[i];
})"},
               {"shared memory in place", R"(// plan: launch k<<<M, 256>>>(x, out, M, N)
{
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = t < N ? x[blockIdx.x * N + t] : 0.f;
  __syncthreads();
  for (int h = 128; h > 0; h >>= 1) __syncthreads();
  if (t > 0) s[t] += ((volatile float*)s)[t - 1];
  __syncthreads();
  if (t < N) out[blockIdx.x * N + t] = s[t];
})"}});
}

TEST(RaceCheck, RightProgramsStayRight) {
  expect_right(kColumnSum, {{"sums of all blocks by atomics", R"(// plan: fill out 0
// plan: launch k<<<M, 128>>>(x, out, M, N)
{
  for (int c = threadIdx.x; c < N; c += 128) atomicAdd(&out[c], x[blockIdx.x * N + c]);
})"},
                            {"the last block to end adds", R"(// plan: temp part float32[cdiv(M, 16), N]
// plan: temp done int32[1]
// plan: fill done 0
// plan: launch k<<<cdiv(M, 16), 64>>>(x, out, part, done, M, N)
extern "C" __global__ void k(const float* x, float* out, float* part, int* done, int M, int N) {
  __shared__ bool last;
  for (int c = threadIdx.x; c < N; c += 64) {
    float a = 0.f;
    for (int r = blockIdx.x * 16; r < min(M, (int)blockIdx.x * 16 + 16); r++) a += x[r * N + c];
    part[blockIdx.x * N + c] = a;
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(done, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  for (int c = threadIdx.x; c < N; c += 64) {
    float a = 0.f;
    for (int b = 0; b < gridDim.x; b++) a += part[b * N + c];
    out[c] = a;
  }
})"},
                            {"each block waits for the one before it", R"(// plan: temp done int32[M]
// plan: fill done 0
// plan: launch k<<<M, 32>>>(x, out, done, M, N)
extern "C" __global__ void k(const float* x, float* out, int* done, int M, int N) {
  int b = blockIdx.x, t = threadIdx.x;
  if (b > 0)
    while (((volatile int*)done)[b - 1] == 0) {
    }
  __threadfence();
  for (int c = t; c < N; c += 32) {
    float before = b > 0 ? ((volatile float*)out)[c] : 0.f;
    out[c] = before + x[b * N + c];
  }
  __threadfence();
  __syncthreads();
  if (t == 0) atomicExch(&done[b], 1);
})"}});
}

}  // namespace
}  // namespace warpsmith::measure

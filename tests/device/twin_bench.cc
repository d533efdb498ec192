// What a candidate costs on the CPU twin beside the same loop in plain C++, one thread each. Prints ratios;
// nothing passes or fails. Each figure is the least of many calls: what is compared is code, not the
// machine's mood.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>

#include "twin_fixture.h"

namespace {

using namespace warpsmith;
using namespace warpsmith::device;

constexpr int kRows = 256, kColumns = 1024, kCalls = 60;

double least_ns(const std::function<double()>& once) {
  double least = 1e18;
  for (int i = 0; i < kCalls; ++i) least = std::min(least, once());
  return least;
}

double plain_ns(const std::function<void()>& f) {
  return least_ns([&] {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  });
}

double twin_ns(const Case& c) {
  const toolchain::CompileResult compiled = compile(c);
  if (compiled.verdict != Verdict::kOk) {
    std::printf("%s\n", compiled.log.c_str());
    return NAN;
  }
  const task::Task task = task_of(c);
  Diagnostics diagnostics;
  const auto plan = task::LaunchPlan::parse(c.source, task, "kernel.cu", diagnostics)
                        .evaluate(task::plan_bindings(task, c.dims));
  TwinOptions options;
  options.binary = compiled.binary;
  options.sandbox = process::available_sandbox();
  TwinSession session(options);
  std::vector<Operand> operands;
  for (const auto& [name, t] : c.inputs) operands.push_back({name, t.bytes.size(), false, 0, t.dtype});
  for (const auto& [name, t] : c.outputs) operands.push_back({name, t.bytes.size(), true, 0, t.dtype});
  if (session.prepare(plan, operands, 1).verdict != Verdict::kOk) return NAN;
  for (const auto& [name, t] : c.inputs)
    std::memcpy(session.operand(0, name).data(), t.bytes.data(), t.bytes.size());
  return least_ns([&] { return static_cast<double>(session.run(0, 1).elapsed_ns); });
}

void print(const char* what, double twin, double plain) {
  std::printf("%-44s twin %9.1f us   plain C++ %9.1f us   ratio %5.2f\n", what, twin / 1e3, plain / 1e3,
              twin / plain);
}

Case rows(const char* source) {
  Case c;
  c.source = source;
  std::vector<float> x(kRows * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) / 97.f - 0.5f;
  c.inputs["x"] = tensor(x);
  c.dims = {{"M", kRows}, {"N", kColumns}};
  c.outputs["out"] = tensor(std::vector<float>(x.size()));
  return c;
}

}  // namespace

int main() {
  const Case base = rows("");
  const std::vector<float> x = values<float>(base.inputs.at("x").bytes);
  std::vector<float> out(x.size());
  const double axpy = plain_ns([&] {
    for (std::size_t i = 0; i < x.size(); ++i) out[i] = 2.f * x[i] + 1.f;
  });
  const double row_sum = plain_ns([&] {
    for (int r = 0; r < kRows; ++r) {
      float s = 0;
      for (int i = 0; i < kColumns; ++i) s += x[static_cast<std::size_t>(r * kColumns + i)];
      out[static_cast<std::size_t>(r)] = s;
    }
  });
  const double softmax = plain_ns([&] {
    for (int r = 0; r < kRows; ++r) {
      const float* row = x.data() + r * kColumns;
      float* to = out.data() + r * kColumns;
      float m = -INFINITY, s = 0;
      for (int i = 0; i < kColumns; ++i) m = std::max(m, row[i]);
      for (int i = 0; i < kColumns; ++i) s += to[i] = std::exp(row[i] - m);
      for (int i = 0; i < kColumns; ++i) to[i] /= s;
    }
  });
  print("a*x+b, a thread an element",
        twin_ns(rows(R"(// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, out, M * N)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.f * x[i] + 1.f;
}
)")),
        axpy);
  print("a*x+b, float4", twin_ns(rows(R"(// plan: launch k<<<cdiv(M * N, 1024), 256>>>(x, out, M * N)
__global__ void k(const float* x, float* out, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i + 3 >= n) return;
  float4 v = *(const float4*)(x + i);
  v.x = 2.f * v.x + 1.f; v.y = 2.f * v.y + 1.f; v.z = 2.f * v.z + 1.f; v.w = 2.f * v.w + 1.f;
  *(float4*)(out + i) = v;
}
)")),
        axpy);
  print("a*x+b, grid-stride loop", twin_ns(rows(R"(// plan: launch k<<<64, 256>>>(x, out, M * N)
__global__ void k(const float* x, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = 2.f * x[i] + 1.f;
}
)")),
        axpy);
  const char* const tree = R"(// plan: launch k<<<M, 256>>>(x, out, N)
__global__ void k(const float* x, float* out, int N) {
  __shared__ float s[256];
  int t = threadIdx.x;
  const float* row = x + blockIdx.x * N;
  float a = 0.f;
  for (int i = t; i < N; i += 256) a += row[i];
  s[t] = a;
  __syncthreads();
  for (int h = 128; h > 0; h /= 2) {
    if (t < h) s[t] += s[t + h];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
)";
  print("row sum, tree in shared memory", twin_ns(rows(tree)), row_sum);
  print("row sum, a warp a row, shuffles",
        twin_ns(rows(R"(// plan: launch k<<<cdiv(M, 8), dim3(32, 8)>>>(x, out, M, N)
__global__ void k(const float* x, float* out, int M, int N) {
  int m = blockIdx.x * 8 + threadIdx.y;
  if (m >= M) return;
  float a = 0.f;
  for (int i = threadIdx.x; i < N; i += 32) a += x[m * N + i];
  for (int h = 16; h > 0; h /= 2) a += __shfl_down_sync(0xffffffff, a, h);
  if (threadIdx.x == 0) out[m] = a;
}
)")),
        row_sum);
  print("softmax, a block a row, barriers", twin_ns(rows(R"(// plan: launch k<<<M, 256>>>(x, out, N)
__global__ void k(const float* x, float* out, int N) {
  __shared__ float s[256];
  int t = threadIdx.x;
  const float* row = x + blockIdx.x * N;
  float m = -INFINITY;
  for (int i = t; i < N; i += 256) m = fmaxf(m, row[i]);
  s[t] = m;
  __syncthreads();
  for (int h = 128; h > 0; h /= 2) {
    if (t < h) s[t] = fmaxf(s[t], s[t + h]);
    __syncthreads();
  }
  m = s[0];
  __syncthreads();
  float a = 0.f;
  for (int i = t; i < N; i += 256) a += expf(row[i] - m);
  s[t] = a;
  __syncthreads();
  for (int h = 128; h > 0; h /= 2) {
    if (t < h) s[t] += s[t + h];
    __syncthreads();
  }
  float r = 1.f / s[0];
  for (int i = t; i < N; i += 256) out[blockIdx.x * N + i] = expf(row[i] - m) * r;
}
)")),
        softmax);
  Case nothing = rows(
      "// plan: launch k<<<1, 1>>>(x, out)\n__global__ void k(const float* x, float* out) { out[0] = x[0]; "
      "}\n");
  std::printf("%-44s twin %9.2f us\n", "an empty launch", twin_ns(nothing) / 1e3);
  return 0;
}

#include "known_ratio.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "warpsmith/base/files.h"
#include "warpsmith/task/hosted_files.h"
#include "warpsmith/toolchain/hosted_candidate.h"

namespace warpsmith::gpu_bench {

namespace {

namespace fs = std::filesystem;

constexpr double kNear = 0.01;
constexpr int kTimes[] = {1, 2};
const char* name_of(int times) { return times == 1 ? "once" : "twice"; }

struct Size {
  const char* id;
  std::int64_t elements;
  int steps;
};
// Some 2.3 us a launch where the operands are small; 128 MiB that are read and written take 45 us on an H100.
constexpr Size kSizes[] = {{"small_4", 1 << 12, 4},
                           {"small_20", 1 << 12, 20},
                           {"small_200", 1 << 12, 200},
                           {"large_10", 1 << 24, 10},
                           {"large_100", 1 << 24, 100}};

std::string task_text(const Size& size) {
  return fmt::format(R"yaml(schema: warpsmith.task/1
title: A product by a constant, {1} times
level: 1
split: extra
ops: [scale]
dims: [N]
inputs:
  x: {{role: data, dtype: float32, shape: [N], values: "normal(0, 1)"}}
scalars: {{steps: {1}}}
outputs:
  out: {{dtype: float32, shape: [N]}}
reference: |
  def forward(x: Tensor, steps: int) -> Tensor:
    for _ in range(steps):
      x = x * 1.0009765625
    return x
timing:
  cpu: [{{N: 64}}]
  gpu: [{{N: {0}}}]
hidden:
  - {{N: 1000}}
flops: N * {1}
bytes: 8 * N
small: "It shows what a score of a short call is worth."
)yaml",
                     size.elements, size.steps);
}

std::string plan_source(int steps, int times) {
  std::string source;
  for (int i = 0; i < times; ++i)
    for (int step = 0; step < steps; ++step)
      source +=
          fmt::format("// plan: launch k<<<cdiv(N, 256), 256>>>({}, out, N)\n", step == 0 ? "x" : "out");
  return source + R"(extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) out[i] = x[i] * 1.0009765625f;
}
)";
}

std::string extension_source(int times) {
  return fmt::format(R"cuda(#include <torch/extension.h>
__global__ void k(const float* x, float* out, int n) {{
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) out[i] = x[i] * 1.0009765625f;
}}
torch::Tensor forward(torch::Tensor x, int64_t steps) {{
  torch::Tensor out = torch::empty_like(x);
  const int n = x.numel();
  for (int i = 0; i < {}; ++i)
    for (int64_t step = 0; step < steps; ++step)
      k<<<(n + 255) / 256, 256>>>((step == 0 ? x : out).data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("forward", &forward); }}
)cuda",
                     times);
}

bool near(double value, double wanted) { return std::abs(value - wanted) <= kNear; }

}  // namespace

void write_known_ratio_tasks(const fs::path& folder) {
  fs::remove_all(folder);
  for (const Size& size : kSizes) {
    fs::create_directories(folder / size.id);
    write_file_atomic(folder / size.id / "task.yaml", task_text(size));
  }
}

void add_known_ratio_programs(Bench& bench) {
  for (const task::Task& task : bench.tasks) {
    const auto size = std::find_if(std::begin(kSizes), std::end(kSizes),
                                   [&](const Size& one) { return task.id == one.id; });
    for (const int times : kTimes) {
      const auto add = [&](Candidate candidate) {
        bench.entries.push_back({&task, name_of(times), "ok", std::move(candidate), {}});
      };
      add(make_plan_candidate(task.id, plan_source(size->steps, times), {}));
      const task::HostedSource source{
          task::HostedTier::kExtension, "", "", {}, {{"kernel.cu", extension_source(times)}}};
      add(toolchain::make_hosted_candidate(task.id, source, {}));
    }
  }
}

void known_ratio(const Bench& bench, measure::GpuMeasurer& measurer) {
  const auto measured = [&](const task::Task& task, Tier tier, int times) {
    if (tier == Tier::kPython) return measurer.measure_reference_as_python(task, times).measurement;
    const Entry& entry = *std::find_if(bench.entries.begin(), bench.entries.end(), [&](const Entry& e) {
      return e.task == &task && e.candidate.tier == tier && e.name == name_of(times);
    });
    if (entry.compiled.verdict == Verdict::kOk)
      return measurer.measure(task, entry.candidate, entry.compiled.binary).measurement;
    Measurement failed;
    failed.verdict = entry.compiled.verdict;
    failed.detail = entry.compiled.log.substr(0, entry.compiled.log.find('\n'));
    return failed;
  };
  int right = 0, once_right = 0, with_once = 0, all = 0;
  for (const task::Task& task : bench.tasks)
    for (const Tier tier : {Tier::kPlan, Tier::kExtension, Tier::kPython}) {
      const std::string what = fmt::format("{:<12} {:<10}", task.id, to_string(tier));
      Measurement m[2];
      for (const int times : kTimes) {
        m[times - 1] = measured(task, tier, times);
        print_gpu(m[times - 1]);
        // Contexts differ by chance in what a launch costs, and these programs are nothing but launches.
        const auto context = m[times - 1].clock.find("context_launch_ns");
        std::printf("%s %-5s %s%s\n", what.c_str(), name_of(times), line_of(m[times - 1]).c_str(),
                    context == m[times - 1].clock.end() ? "" : (", a launch " + context->second).c_str());
      }
      const bool scored = m[0].rounds > 0 && m[1].rounds > 0;
      const double ratio = scored ? m[1].speedup / m[0].speedup : 0;
      ++all;
      right += near(ratio, 0.5);
      if (tier == Tier::kPython) {
        ++with_once;
        once_right += m[0].rounds > 0 && near(m[0].speedup, 1);
      }
      std::printf("%s twice over once %.4f\n", what.c_str(), ratio);
      std::fflush(stdout);
    }
  std::printf(
      "known ratio: twice over once within 0.50 +- 0.01: %d of %d; once within 1.00 +- 0.01, tier python: "
      "%d of %d\n",
      right, all, once_right, with_once);
}

}  // namespace warpsmith::gpu_bench

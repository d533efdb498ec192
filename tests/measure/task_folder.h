// A task for tests in a folder of its own, and its candidates compiled.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/host.h"

namespace warpsmith::measure {

// For short measurements that may be taken beside others.
inline Settings quick_settings() {
  Settings settings;
  settings.budget_s = 0.3;
  settings.protocol.target = 0.05;        // the host of a test may be busy …
  settings.protocol.variance_gate = 100;  // … and what is tested is not its peace
  settings.unsandboxed = true;
  settings.remeasure_above = 1e9;
  return settings;
}

inline constexpr const char* kSoftplus = R"yaml(schema: warpsmith.task/1
title: Twice the softplus
level: 1
split: train
ops: [softplus]
dims: [M, N]
inputs:
  x: {role: data, dtype: float32, shape: [M, N], values: "normal(0, 1)"}
outputs:
  out: {dtype: float32, shape: [M, N]}
reference: |
  def forward(x: Tensor) -> Tensor:
    return torch.log(torch.exp(x) + 1.0) * 2.0
timing:
  - {M: 64, N: 128}
hidden:
  - {M: 3, N: 33}
  - {M: 1, N: 1}
distributions:
  - {x: "uniform(-3, 3)"}
flops: 4 * M * N
bytes: 8 * M * N
)yaml";

// A whole candidate from what it does with `x[i]`.
inline std::string candidate(const std::string& body) {
  return "// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, out, M, N)\n"
         "extern \"C\" __global__ void k(const float* x, float* out, int M, int N) {\n"
         "  int i = blockIdx.x * 128 + threadIdx.x;\n"
         "  if (i < M * N) {\n" +
         body + "\n  }\n}\n";
}

class TaskFolder {
 public:
  TaskFolder(const std::string& id, const char* yaml) {
    make_folders(scratch_ / id / "candidates");
    write_file_atomic(scratch_ / id / "task.yaml", yaml);
    Diagnostics mistakes;
    const auto task = task::load_task(scratch_ / id, mistakes);
    if (!task) throw InvalidInput(mistakes);
    task_ = *task;
  }

  const task::Task& task() const { return task_; }
  const std::filesystem::path& datasets() const { return scratch_.path(); }

  std::filesystem::path compile(const Candidate& made) const {
    toolchain::CompileOptions options;
    options.cache = scratch_ / "cache";
    options.unsandboxed = true;
    const toolchain::CompileResult result = toolchain::compile_for_host(made, task_, options);
    EXPECT_EQ(result.verdict, Verdict::kOk) << result.log;
    return result.binary;
  }

 private:
  Scratch scratch_;
  task::Task task_;
};

}  // namespace warpsmith::measure

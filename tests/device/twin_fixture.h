// Compiles a candidate's source, runs its plan once on the CPU twin and gives what it wrote.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "warpsmith/base/files.h"
#include "warpsmith/device/twin_session.h"
#include "warpsmith/process/child.h"
#include "warpsmith/task/launch_plan.h"
#include "warpsmith/toolchain/host.h"

namespace warpsmith::device {

struct Tensor {
  task::Dtype dtype = task::Dtype::kFloat32;
  std::vector<std::byte> bytes;
};

template <typename T>
constexpr task::Dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) return task::Dtype::kFloat32;
  if constexpr (std::is_same_v<T, double>) return task::Dtype::kFloat64;
  if constexpr (std::is_same_v<T, std::int64_t>) return task::Dtype::kInt64;
  if constexpr (std::is_same_v<T, std::uint16_t>) return task::Dtype::kFloat16;
  return task::Dtype::kInt32;
}

template <typename T>
Tensor tensor(const std::vector<T>& values) {
  Tensor t{dtype_of<T>(), std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
  return t;
}

template <typename T>
std::vector<T> values(const std::vector<std::byte>& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

struct Case {
  std::string source;
  std::map<std::string, Tensor> inputs;
  std::map<std::string, Tensor> outputs;  // type and size
  task::Dims dims;
  int threads = 1;
  bool mixed = false;  // TwinOptions::mixed
  double call_timeout_s = 5;
  std::map<std::string, std::uint64_t> misalignment;
  process::SandboxLevel sandbox = process::available_sandbox();
};

struct Outcome {
  Verdict verdict = Verdict::kNotMeasured;
  std::string detail;  // log of the compiler, or what the session said
  std::map<std::string, std::vector<std::byte>> outputs;
  std::vector<std::map<std::string, std::vector<std::byte>>> mixed_outputs;  // of each order
};

inline std::filesystem::path test_cache() {
  static const std::filesystem::path folder = [] {
    auto path =
        std::filesystem::temp_directory_path() / ("warpsmith-twin-test-" + std::to_string(::getpid()));
    std::filesystem::create_directories(path);
    std::atexit([] {
      std::error_code error;
      std::filesystem::remove_all(
          std::filesystem::temp_directory_path() / ("warpsmith-twin-test-" + std::to_string(::getpid())),
          error);
    });
    return path;
  }();
  return folder;
}

inline task::Task task_of(const Case& c) {
  task::Task task;
  task.id = "test";
  for (const auto& [name, value] : c.dims) task.dims.push_back(name);
  const auto spec = [](const std::string& name, const Tensor& t) {
    task::TensorSpec s;
    s.name = name;
    s.dtype = t.dtype;
    s.shape = {
        task::Expression::constant(static_cast<std::int64_t>(t.bytes.size() / task::size_of(t.dtype)))};
    return s;
  };
  for (const auto& [name, t] : c.inputs) task.inputs.push_back(spec(name, t));
  for (const auto& [name, t] : c.outputs) task.outputs.push_back(spec(name, t));
  return task;
}

inline toolchain::CompileResult compile(const Case& c) {
  toolchain::CompileOptions options;
  options.cache = test_cache();
  return toolchain::compile_for_host(make_plan_candidate("test", c.source, {}), task_of(c), options);
}

inline Outcome run_binary(const Case& c, const std::filesystem::path& binary) {
  Outcome outcome;
  const task::Task task = task_of(c);
  Diagnostics diagnostics;
  const task::LaunchPlan plan = task::LaunchPlan::parse(c.source, task, "kernel.cu", diagnostics);
  task::ConcretePlan concrete;
  try {
    concrete = plan.evaluate(task::plan_bindings(task, c.dims));
  } catch (const task::PlanError& e) {
    outcome.verdict = e.out_of_memory ? Verdict::kOutOfMemory : Verdict::kLaunchError;
    outcome.detail = e.message;
    return outcome;
  }
  TwinOptions options;
  options.binary = binary;
  options.threads = c.threads;
  options.mixed = c.mixed;
  options.call_timeout_s = c.call_timeout_s;
  options.sandbox = c.sandbox;
  TwinSession session(options);
  std::vector<Operand> operands;
  const auto add = [&](const std::string& name, const Tensor& t, bool writable) {
    const auto shift = c.misalignment.find(name);
    operands.push_back(
        {name, t.bytes.size(), writable, shift == c.misalignment.end() ? 0 : shift->second, t.dtype});
  };
  for (const auto& [name, t] : c.inputs) add(name, t, false);
  for (const auto& [name, t] : c.outputs) add(name, t, true);
  const int sets = c.mixed ? kMixedOrders : 1;
  TwinRun run = session.prepare(concrete, operands, sets);
  if (run.verdict == Verdict::kOk) {
    for (int set = 0; set < sets; ++set)
      for (const auto& [name, t] : c.inputs)
        std::memcpy(session.operand(set, name).data(), t.bytes.data(), t.bytes.size());
    session.poison(0, sets);
    run = session.run(0, sets);
  }
  outcome.verdict = run.verdict;
  outcome.detail = run.detail;
  if (run.verdict != Verdict::kOk) return outcome;
  for (int set = 0; set < sets; ++set) {
    auto& outputs = c.mixed ? outcome.mixed_outputs.emplace_back() : outcome.outputs;
    for (const auto& [name, t] : c.outputs) {
      const auto span = session.operand(set, name);
      outputs[name].assign(span.begin(), span.end());
    }
  }
  return outcome;
}

inline Outcome run_case(const Case& c) {
  const toolchain::CompileResult compiled = compile(c);
  if (compiled.verdict != Verdict::kOk) return {compiled.verdict, compiled.log, {}};
  return run_binary(c, compiled.binary);
}

}  // namespace warpsmith::device

// Problems of KernelBench among a run's tasks.
#pragma once

#include <optional>
#include <string>

namespace warpsmith::report {

// KernelBench calls a problem by its level and its number there, and by its file's name.
struct KernelBenchProblem {
  int level = 0, number = 0;
  std::string file;  // "19_ReLU.py"
};

// The problem that a task is, by its id: `level1_19_ReLU`, with or without a prefix (`kb_level1_19_ReLU`).
// Nothing where the id has no such form.
std::optional<KernelBenchProblem> kernelbench_problem(const std::string& task);

}  // namespace warpsmith::report

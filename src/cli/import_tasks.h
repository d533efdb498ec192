// Modules of KernelBench's form as folders of tasks of ours: `warpsmith import`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"

namespace warpsmith::cli {

// What a task's folder calls the module.
inline constexpr const char* kModuleFile = "reference.py";

// A file of KernelBench, or of its form, and what became of it.
struct KernelBenchTask {
  std::filesystem::path file;
  int level = 1, number = 0;
  std::string id;  // of the task that it becomes: level2_1_Conv2D_ReLU_BiasAdd
  std::string title;
  std::string source;        // where it comes from, for people
  std::string place;         // and for messages: a file, or a file and a line
  Json described = nullptr;  // src/python/import_task.py; null: refused, or there already
  std::string refused = "";  // why; empty: it was not
  bool there = false;        // its folder is there already
};

// Whether it holds a level of KernelBench's.
bool is_kernelbench(const std::filesystem::path& folder);

// level<N>/<number>_<name>.py below a checkout of KernelBench, sorted by level and number. `levels`: those
// alone; empty: those of 1 to 3 that are there. Throws Error (kExitUsage) where there is none.
std::vector<KernelBenchTask> find_kernelbench(const std::filesystem::path& checkout,
                                              const std::vector<int>& levels);
// Describes those that are neither refused nor there, in sandboxed python3 children beside each other. Throws
// Error where there is no python3 with torch or, unless `unsandboxed`, no sandbox. `progress` is told how
// many are done, and of how many.
void describe_tasks(std::vector<KernelBenchTask>& tasks, bool unsandboxed,
                    const std::function<void(std::size_t, std::size_t)>& progress);
// Describes them and writes a folder below `into` for each, and says on stderr how far it is. What is there
// stays: `there`, where it is made of the same module, else `refused`. Throws Error as describe_tasks().
void make_tasks(const std::filesystem::path& into, std::vector<KernelBenchTask>& tasks, bool unsandboxed);
// By the SHA-256 of a module's file, in hexadecimal digits: why a speedup over it says nothing, as
// datasets/kernelbench_degenerate.yaml has it; empty for others.
std::string why_degenerate(const std::string& sha256);
// The text of its task.yaml.
std::string task_yaml(const KernelBenchTask& task);

}  // namespace warpsmith::cli

// Kernels of others beside their tasks: <task>/imported/<name>.py or .cu, and of each in origin.json where it
// comes from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"

namespace warpsmith::cli {

// One to be imported.
struct ForeignKernel {
  std::string name;              // of its file, without the ending; imported_name()
  std::string ending = ".py";    // or ".cu"
  std::string text;              // byte for byte
  Json origin = Json::object();  // "from", …; with "missing" there is no kernel, and no file
};

// What can be a file's name in a task's imported/.
std::string imported_name(std::string text);

enum class Added { kNew, kThere, kMissing };
// Adds it to a task's folder. What is there of that name stays: where that is another kernel, or where this
// one can be no candidate, nothing is added and `refused` says why.
Added add_kernel(const std::filesystem::path& task_folder, const ForeignKernel& kernel, std::string& refused);

// A kernel of a run of KernelBench.
struct RunKernel {
  std::filesystem::path file;
  int level = 0, number = 0;
  ForeignKernel kernel;
};
// level_{L}_problem_{P}_sample_{S}_kernel.py of the folder runs/<name>, sorted, with what an
// eval_results.json beside them says of each. Throws Error (kExitUsage) where there is none.
std::vector<RunKernel> read_kernelbench_run(const std::filesystem::path& folder, Diagnostics& mistakes);

// Files that end in .py or .cu, and those of folders.
std::vector<ForeignKernel> read_kernels(const std::vector<std::string>& paths, Diagnostics& mistakes);

}  // namespace warpsmith::cli

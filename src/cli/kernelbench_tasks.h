// The tasks of a checkout of KernelBench, and of one file of its form, in folders that nobody had to make:
// they are made once and kept in the user's cache, by the content of the modules.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "import_tasks.h"

namespace warpsmith::cli {

// $WARPSMITH_CACHE, else $XDG_CACHE_HOME/warpsmith, else ~/.cache/warpsmith. Throws Error where none is said.
std::filesystem::path cache_folder();

struct CachedTasks {
  std::filesystem::path folder;        // of folders of tasks
  std::vector<KernelBenchTask> tasks;  // with what is refused
};
// `levels`: those alone; empty: 1 to 3. Says on stderr how far it is. Throws Error where there is no
// checkout, no python3 with torch or, unless `unsandboxed`, no sandbox.
CachedTasks kernelbench_tasks(const std::filesystem::path& checkout, const std::vector<int>& levels,
                              bool unsandboxed = false);
// The folder of the task that a module is. Throws Error with the reason where it is none.
std::filesystem::path task_of_module(const std::filesystem::path& module, bool unsandboxed = false);

}  // namespace warpsmith::cli

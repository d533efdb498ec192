// `warpsmith validate FOLDER --device D`: the tasks themselves. Each reference runs on the device at every
// shape and distribution; a task that a program without any work would pass is a mistake, unless its file
// says that it is `degenerate`. warpsmith-measure, beside this program, does the work.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"
#include "warpsmith/task/task.h"

namespace warpsmith::cli {

struct ValidateTasksOptions {
  std::string device = "cpu";  // "cpu", "auto" (a GPU where there is one), or a GPU type
  int threads = 1;
  int seeds = 3;  // of every shape's own values
  bool unsandboxed = false;
};

struct CheckedTask {
  std::string task, file, device, error;  // file: its task.yaml; error: what kept the reference from running
  int cases = 0;
  double eager_ns = 0;  // of a call at the timing shape, roughly; 0: it was not taken
  std::vector<std::string> undecidable;
  std::string degenerate;  // as found; empty: a speedup says something
  std::string marked;      // as its file has it
  std::vector<std::string> notes;
};

// Compiles the references of `tasks`, runs none of them, and adds those that do not compile to `mistakes`.
// False where warpsmith-measure, which does it, is not beside this program.
bool compile_references(const std::vector<task::Task>& tasks, Diagnostics& mistakes);

// Throws Error where there is no such device, the program fails, or a signal asks for the end
// (kExitInterrupted).
std::vector<CheckedTask> check_tasks(const std::vector<task::Task>& tasks,
                                     const ValidateTasksOptions& options);
// Mistakes, each at its task.yaml.
Diagnostics mistakes_of(const std::vector<CheckedTask>& checked);

std::string checked_text(const std::vector<CheckedTask>& checked);
Json checked_json(const std::vector<CheckedTask>& checked);

}  // namespace warpsmith::cli

// Synthesised tasks as files: a folder of tasks, or modules in KernelBench's form.
#pragma once

#include <filesystem>

#include "warpsmith/base/json.h"
#include "warpsmith/synthesis/synthesize.h"

namespace warpsmith::synthesis {

enum class TaskForm { kTask, kKernelBench };

// Adds the tasks in a folder to those that are never made: a model is to be judged by them. Throws
// InvalidInput where they have mistakes.
void leave_out(const std::filesystem::path& folder, Settings& settings);

// Writes all tasks below `into`, and synthesis.json. Of form `task`: <id>/task.yaml with programs from
// templates: in candidates/ok/ of solved tasks, in templates/ of others, where nothing is learned from them:
// what a model writes is compared with them. Throws Error where a file cannot be written.
void write_tasks(const Synthesis& made, const Settings& settings, const std::filesystem::path& into,
                 TaskForm form = TaskForm::kTask, bool programs = true);

// synthesis.json: seeds, what is held out, what was dropped, the tasks.
Json summary_of(const Synthesis& made, const Settings& settings);

}  // namespace warpsmith::synthesis

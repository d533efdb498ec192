// The parameters and buffers with which a task's module begins (task::as_module()).
#pragma once

#include <filesystem>

#include "warpsmith/task/task.h"

namespace warpsmith::measure {

// The file in `folder` with the bytes of `task.state`, one tensor after the other. Where it is not there, a
// sandboxed python3 makes the module, seeded as candidates are, and the files of other tasks go: some have
// gigabytes. Another process may ask at the same time. Throws InvalidInput where the module fails or its
// tensors are not what the task says; Error where there is no python3 or, unless `unsandboxed`, no sandbox.
std::filesystem::path module_state(const task::Task& task, const std::filesystem::path& folder,
                                   bool unsandboxed);

}  // namespace warpsmith::measure

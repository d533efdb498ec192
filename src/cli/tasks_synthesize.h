#pragma once

#include <CLI/CLI.hpp>

#include "warpsmith/cli/command.h"

namespace warpsmith::cli {

// Adds `synthesize` to the command `tasks`.
void add_tasks_synthesize(CLI::App& tasks, CommandContext& context);

}  // namespace warpsmith::cli

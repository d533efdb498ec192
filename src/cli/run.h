// The way of `warpsmith run`, for other commands that end in a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/plan/plan.h"

namespace warpsmith::cli {

struct RunOptions {
  std::string file, run_dir, replay, site;
  std::vector<std::string> overrides;
  std::optional<std::uint64_t> seed;
  plan::Selection selection;
  bool fresh = false, unsandboxed = false, quiet = false, detach = false, in_job = false;
  std::vector<std::string> command;  // as this process was called
  Json answer = Json::object();      // what --json answers beside the run's state
};

// Carries the workflow through its stages, or goes on with its run. Returns the exit code; throws Error.
int run_workflow(const RunOptions& options, CommandContext& context);

// --site, --detach, --in-job, --unsandboxed, --quiet, --json.
void add_place_options(CLI::App& command, RunOptions& options, CommandContext& context);

// Where a run of that name lies: --run-dir, else below the results; with --new one that is not there yet.
std::filesystem::path choose_folder(const RunOptions& options, const CommandContext& context,
                                    const std::string& name);

// Adds the build to `builds` of run.json, unless it is there: what has run stages of the run.
void note_build(const std::filesystem::path& run, const Build& build);

// As the kernel keeps it; the program's own path in full.
std::vector<std::string> command_line();

// Whether some stage of the run has a candidate with a verdict of the device: not `not_measured`, not
// `unsupported`.
bool measured_something(const std::filesystem::path& run);

}  // namespace warpsmith::cli

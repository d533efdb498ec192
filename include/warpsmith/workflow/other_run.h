// Runs that a workflow takes candidates from (`candidates_of_run`), as messages speak of them.
#pragma once

#include <filesystem>
#include <string>

namespace warpsmith::workflow {

// Empty where the folder holds a run with the output of a stage; else what it lacks: "there is no run DIR",
// "the run DIR has no finished stage". Looks at names of files alone.
std::string lack_of_run(const std::filesystem::path& folder);

// The command that makes the run in `folder`, or goes on with it: by its run.json, else by the workflow of
// its name beside `workflow_file`.
std::string command_for_run(const std::filesystem::path& folder, const std::filesystem::path& workflow_file);

// A path as people in the current folder would write it.
std::string shown_path(const std::filesystem::path& path);

}  // namespace warpsmith::workflow

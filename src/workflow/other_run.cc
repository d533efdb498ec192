#include "warpsmith/workflow/other_run.h"

#include <fmt/format.h>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/paths.h"

namespace warpsmith::workflow {

namespace {

bool has_output(const fs::path& run) {
  for (const fs::path& stage : folder_entries(run / "stages"))
    for (const fs::path& version : folder_entries(stage))
      if (path_exists(version / "output.json")) return true;
  return false;
}

// As run.json says; empty where it does not.
fs::path workflow_of(const fs::path& run) {
  std::error_code error;
  if (!fs::exists(run / "run.json", error)) return {};
  try {
    return read_json_file(run / "run.json").value("workflow_file", "");
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

std::string shown_path(const fs::path& path) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  const fs::path near = error ? fs::path() : path.lexically_proximate(here);
  return near.empty() || *near.begin() == ".." ? path.string() : near.string();
}

std::string lack_of_run(const fs::path& folder) {
  if (!path_exists(folder / "run.json")) return "there is no run " + shown_path(folder);
  if (!has_output(folder)) return "the run " + shown_path(folder) + " has no finished stage";
  return "";
}

std::string command_for_run(const fs::path& folder, const fs::path& workflow_file) {
  const std::string name = folder.filename().string();
  std::error_code error;
  fs::path file = workflow_of(folder);
  if (file.empty()) {
    file = workflow_file.parent_path() / (name + ".yaml");
    if (!fs::exists(file, error)) file = "WORKFLOW.yaml";
  }
  std::string command = "warpsmith run " + shown_path(file);
  // Where a run of that workflow would lie by itself.
  if (file.stem() != name || shown_path(folder) != "results/" + name)
    command += " --run-dir " + shown_path(folder);
  return command;
}

}  // namespace warpsmith::workflow

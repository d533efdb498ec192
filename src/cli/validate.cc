// `warpsmith validate`: every mistake in workflow files and folders of tasks; nothing is started.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "warpsmith/base/files.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/task/check.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::vector<std::string> paths, overrides;
};

struct Findings {
  std::string path, summary;
  Diagnostics mistakes, notes;
};

Findings check_folder(const fs::path& path) {
  Findings found{path.string(), "", {}, {}};
  if (fs::exists(path / "task.yaml")) {  // one task
    const auto task = task::load_task(path, found.mistakes);
    const std::size_t files = task ? task::load_candidate_files(*task, found.mistakes).size() : 0;
    found.summary = fmt::format("1 task, {} candidates", files);
    return found;
  }
  const task::DatasetCount count = task::check_dataset(path, found.mistakes);
  if (count.tasks == 0 && found.mistakes.empty())
    found.mistakes.push_back({path.string(), 0, 0, "the folder holds no task", "a task is a folder with a task.yaml"});
  found.summary = fmt::format("{} tasks, {} candidates", count.tasks, count.candidates);
  return found;
}

Findings check_workflow(const fs::path& path, const std::vector<std::string>& overrides) {
  workflow::LoadResult loaded = workflow::load_workflow(path, {.overrides = overrides, .seed = {}, .base_folder = {}});
  Findings found{path.string(), "", std::move(loaded.mistakes), std::move(loaded.notes)};
  if (!loaded.spec) return found;
  found.summary = fmt::format("workflow {}, {} stages", loaded.spec->name, loaded.spec->stages.size());
  Diagnostics in_tasks;  // of the dataset that it names: `validate FOLDER` tells them one by one
  for (const auto& stage : loaded.spec->stages) {
    if (stage.dataset.folder.empty()) continue;
    task::load_tasks(stage.dataset.folder, in_tasks);
    if (!in_tasks.empty())
      found.mistakes.push_back({path.string(), 0, 0, fmt::format("its dataset has {} mistakes", in_tasks.size()),
                                "warpsmith validate " + stage.dataset.folder.string()});
    break;
  }
  return found;
}

Json diagnostics_json(const Diagnostics& diagnostics) {
  Json list = Json::array();
  for (const Diagnostic& d : diagnostics)
    list.push_back({{"file", d.file}, {"line", d.line}, {"column", d.column}, {"message", d.message}, {"hint", d.hint}});
  return list;
}

int validate(const Options& options, CommandContext& context) {
  std::size_t mistakes = 0;
  Json answer = Json::array();
  for (const std::string& text : options.paths) {
    const fs::path path = text;
    const Findings found = fs::is_directory(path) ? check_folder(path) : check_workflow(path, options.overrides);
    mistakes += found.mistakes.size();
    if (context.json) {
      answer.push_back({{"path", found.path}, {"mistakes", diagnostics_json(found.mistakes)}, {"notes", diagnostics_json(found.notes)}});
      continue;
    }
    print_diagnostics(found.mistakes);
    for (const Diagnostic& note : found.notes) std::fprintf(stderr, "note: %s\n", to_string(note).c_str());
    if (found.mistakes.empty()) std::printf("%s: good (%s)\n", found.path.c_str(), found.summary.c_str());
  }
  if (context.json) print_json(context, answer);
  else if (mistakes > 0) std::fprintf(stderr, "%zu mistake%s\n", mistakes, mistakes == 1 ? "" : "s");
  return mistakes == 0 ? kExitOk : kExitUsage;
}

}  // namespace

void add_validate(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, context, "validate", "Reports every mistake in workflow files and folders of tasks",
                                  "warpsmith validate workflows/quickstart.yaml datasets/", [options, &context] { return validate(*options, context); });
  command->add_option("PATH", options->paths, "Workflow files, folders of tasks, or folders of one task")->required();
  command->add_option("--set", options->overrides, "PATH=VALUE in the workflow, such as params.steps=100")->allow_extra_args(false);
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

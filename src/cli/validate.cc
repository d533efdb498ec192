// `warpsmith validate`: every mistake in workflow files, site files and folders of tasks; nothing is started.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "load_options.h"
#include "print.h"
#include "validate_measure.h"
#include "validate_tasks.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/task/check.h"
#include "warpsmith/workflow/load.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::cli {

namespace {

// Of workflows/families.yaml, too: wide enough for eager of thousands of launches on a shared host.
constexpr double kVarianceGate = 0.02;

struct Options {
  std::vector<std::string> paths, overrides, only;
  bool measure = false;
  MeasureOptions measuring;
  std::string device;  // empty: nothing is run
};

struct Findings {
  std::string path, summary;
  Diagnostics mistakes, notes;
};

void compile_references_of(const std::vector<task::Task>& tasks, Findings& found) {
  if (tasks.empty() || !found.mistakes.empty()) return;
  if (!compile_references(tasks, found.mistakes))
    found.notes.push_back(
        {found.path, 0, 0, "references were not compiled: warpsmith-measure was not built", ""});
}

Findings check_folder(const fs::path& path) {
  Findings found{path.string(), "", {}, {}};
  if (path_exists(path / "task.yaml")) {  // one task
    const auto task = task::load_task(path, found.mistakes);
    const int files = task ? task::check_candidates(*task, found.mistakes) : 0;
    found.summary = fmt::format("1 task, {} candidates", files);
    if (task) compile_references_of({*task}, found);
    return found;
  }
  const task::DatasetCount count = task::check_dataset(path, found.mistakes);
  if (count.tasks == 0 && found.mistakes.empty())
    found.mistakes.push_back(
        {path.string(), 0, 0, "the folder holds no task", "a task is a folder with a task.yaml"});
  found.summary = fmt::format("{} tasks, {} candidates", count.tasks, count.candidates);
  if (found.mistakes.empty()) compile_references_of(task::load_tasks(path, found.mistakes), found);
  return found;
}

Findings check_site(const fs::path& path, std::string_view text, const std::vector<std::string>& overrides) {
  Findings found{path.string(), "", {}, {}};
  const workflow::SiteSpec site = workflow::load_site_text(text, path, found.mistakes);
  std::string types;
  for (const auto& [type, place] : site.gpus) types += (types.empty() ? "" : ", ") + type;
  found.summary = fmt::format("site {}, {}", site.name, types.empty() ? "no GPUs" : "GPU types " + types);
  if (!overrides.empty()) found.notes.push_back({found.path, 0, 0, "--set changes workflows alone", ""});
  return found;
}

Findings check_file(const fs::path& path, const std::vector<std::string>& overrides) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const Error& e) {
    return {path.string(), "", {{"", 0, 0, e.what(), ""}}, {}};
  }
  if (workflow::is_site_text(text)) return check_site(path, text, overrides);
  workflow::LoadResult loaded = workflow::load_workflow_text(
      text, path, with_folders({.overrides = overrides, .seed = {}, .base_folder = {}}));
  Findings found{path.string(), "", std::move(loaded.mistakes), std::move(loaded.notes)};
  if (!loaded.spec) return found;
  found.summary = fmt::format("workflow {}, {} stages", loaded.spec->name, loaded.spec->stages.size());
  Diagnostics in_tasks, elsewhere;  // of the dataset that it names: `validate FOLDER` tells them one by one
  for (const auto& stage : loaded.spec->stages) {
    if (stage.dataset.folder.empty() || !is_folder(stage.dataset.folder)) continue;
    task::load_tasks(stage.dataset.folder, stage.dataset.ids(), in_tasks, elsewhere);
    const std::string command = "warpsmith validate " + stage.dataset.folder.string();
    if (!in_tasks.empty())
      found.mistakes.push_back(
          {path.string(), 0, 0, fmt::format("its tasks have {} mistakes", in_tasks.size()), command});
    if (!elsewhere.empty())
      found.notes.push_back({path.string(), 0, 0,
                             fmt::format("tasks that it does not name have {} mistakes", elsewhere.size()),
                             command});
    break;
  }
  return found;
}

Json diagnostics_json(const Diagnostics& diagnostics) {
  Json list = Json::array();
  for (const Diagnostic& d : diagnostics)
    list.push_back(
        {{"file", d.file}, {"line", d.line}, {"column", d.column}, {"message", d.message}, {"hint", d.hint}});
  return list;
}

Error no_such_task(const std::string& id, const std::vector<task::Task>& tasks) {
  std::vector<std::string> known;
  for (const task::Task& task : tasks) known.push_back(task.id);
  return Error("there is no task `" + id + "`" + did_you_mean(id, known, {.before = " (", .after = ")"}),
               kExitUsage);
}

// Tasks in the folders given, or those of them that --task names.
std::vector<task::Task> tasks_to_measure(const Options& options) {
  std::vector<task::Task> tasks;
  Diagnostics mistakes;
  for (const std::string& text : options.paths) {
    const fs::path path = text;
    if (!is_folder(path))
      throw Error(text + ": " + (options.measure ? "--measure" : "--device") + " takes folders of tasks",
                  kExitUsage);
    if (path_exists(path / "task.yaml")) {
      if (auto task = task::load_task(path, mistakes)) tasks.push_back(std::move(*task));
    } else {
      for (task::Task& task : task::load_tasks(path, mistakes)) tasks.push_back(std::move(task));
    }
  }
  if (!mistakes.empty()) throw InvalidInput(mistakes);
  for (const std::string& id : options.only)
    if (std::none_of(tasks.begin(), tasks.end(), [&](const task::Task& task) { return task.id == id; }))
      throw no_such_task(id, tasks);
  if (!options.only.empty())
    std::erase_if(tasks, [&](const task::Task& task) {
      return std::find(options.only.begin(), options.only.end(), task.id) == options.only.end();
    });
  if (tasks.empty()) throw Error("there is no task to measure", kExitUsage);
  return tasks;
}

int validate_by_measuring(const Options& options, CommandContext& context) {
  MeasureOptions measuring = options.measuring;
  if (!options.device.empty()) measuring.device = options.device;
  // Verdicts are asked for. A host that launches slowly makes scores wide, and no program wrong.
  measuring.variance_gate = kVarianceGate;
  const std::vector<MeasuredTask> measured = measure_tasks(tasks_to_measure(options), measuring);
  if (context.json) {
    print_json(context, measured_json(measured));
  } else {
    print_text(stdout, measured_text(measured));
  }
  return verdicts_that_differ(measured) == 0 ? kExitOk : kExitFailed;
}

int validate_on_device(const Options& options, CommandContext& context) {
  const std::vector<CheckedTask> checked =
      check_tasks(tasks_to_measure(options), {.device = options.device,
                                              .threads = options.measuring.threads,
                                              .unsandboxed = options.measuring.unsandboxed});
  const Diagnostics mistakes = mistakes_of(checked);
  if (context.json) {
    print_json(context, {{"tasks", checked_json(checked)}, {"mistakes", diagnostics_json(mistakes)}});
  } else {
    print_text(stdout, checked_text(checked));
    print_diagnostics(mistakes);
    if (!mistakes.empty()) print_error("%zu mistake%s\n", mistakes.size(), mistakes.size() == 1 ? "" : "s");
  }
  return mistakes.empty() ? kExitOk : kExitUsage;
}

int validate(const Options& options, CommandContext& context) {
  check_device(options.device);
  if (options.measure) return validate_by_measuring(options, context);
  if (!options.device.empty()) return validate_on_device(options, context);
  std::size_t mistakes = 0;
  Json answer = Json::array();
  for (const std::string& text : options.paths) {
    const fs::path path = text;
    const Findings found = is_folder(path) ? check_folder(path) : check_file(path, options.overrides);
    mistakes += found.mistakes.size();
    if (context.json) {
      answer.push_back({{"path", found.path},
                        {"mistakes", diagnostics_json(found.mistakes)},
                        {"notes", diagnostics_json(found.notes)}});
      continue;
    }
    print_diagnostics(found.mistakes);
    for (const Diagnostic& note : found.notes) print_error("note: %s\n", to_string(note).c_str());
    if (found.mistakes.empty()) print("%s: good (%s)\n", found.path.c_str(), found.summary.c_str());
  }
  if (context.json)
    print_json(context, answer);
  else if (mistakes > 0)
    print_error("%zu mistake%s\n", mistakes, mistakes == 1 ? "" : "s");
  return mistakes == 0 ? kExitOk : kExitUsage;
}

}  // namespace

void add_validate(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, context, "validate",
                                  "Reports every mistake in workflow files, site files and folders of tasks",
                                  "warpsmith validate workflows/quickstart.yaml datasets/",
                                  [options, &context] { return validate(*options, context); });
  command
      ->add_option("PATH", options->paths,
                   "Workflow files, site files, folders of tasks, or folders of one task")
      ->required();
  command->add_option("--set", options->overrides, "PATH=VALUE in the workflow, such as params.steps=100")
      ->allow_extra_args(false);
  command->add_flag(
      "--measure", options->measure,
      "Compile and measure every candidate of the folders, on the CPU unless --device says otherwise; exit "
      "code 1 where a verdict is not its folder's");
  command->add_option(
      "--device", options->device,
      "`cpu`, a GPU type or `auto`: run every task's reference there, and find tasks that a program "
      "without any work passes; with --measure: what the candidates are measured on");
  command
      ->add_option("--task", options->only,
                   "With --measure and --device: this task only (may be given again)")
      ->allow_extra_args(false);
  command
      ->add_option("--threads", options->measuring.threads,
                   "With --measure: CPU threads of candidate and baseline")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--budget", options->measuring.budget_s,
                   "With --measure: seconds to time a candidate in, at most")
      ->check(CLI::PositiveNumber);
  command->add_flag("--unsandboxed", options->measuring.unsandboxed,
                    "With --measure and --device: go on where there is no sandbox");
  command->add_flag("!--verdicts-only", options->measuring.timing,
                    "With --measure: no timing, for a machine that is busy");
  command->add_flag("--keep", options->measuring.keep,
                    "With --measure: keep the folder with jobs and records");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

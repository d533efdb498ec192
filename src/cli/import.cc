// `warpsmith import kernelbench PATH --into DIR`: other people's tasks as folders of tasks.
#include <CLI/CLI.hpp>
#include <memory>
#include <system_error>

#include "import_tasks.h"
#include "print.h"
#include "validate_tasks.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/task/task.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string what, checkout, into;
  std::vector<int> levels;
  bool unsandboxed = false;
};

// Takes its folder back.
void refuse(const fs::path& folder, std::string why, KernelBenchTask& task) {
  task.refused = std::move(why);
  std::error_code error;
  for (const char* name : {"task.yaml", kModuleFile}) fs::remove(folder / name, error);
  fs::remove(folder, error);  // stays where there is more in it
}

// Writes the task's folder; nothing is left of it where the task is none after all.
std::optional<task::Task> write_task(const fs::path& folder, KernelBenchTask& from) {
  Diagnostics mistakes;
  make_folders(folder);
  write_file_atomic(folder / kModuleFile, read_file(from.file));
  write_file_atomic(folder / "task.yaml", task_yaml(from));
  std::optional<task::Task> task = task::load_task(folder, mistakes);
  if (!task) refuse(folder, to_string(mistakes.front()), from);
  return task;
}

// Takes the folders back of those whose reference does not compile.
void compile_all(const std::vector<task::Task>& written, std::vector<KernelBenchTask>& tasks,
                 const fs::path& into) {
  Diagnostics mistakes;
  if (!compile_references(written, mistakes)) {
    print_error("note: references were not compiled: warpsmith-measure was not built\n");
    return;
  }
  for (const Diagnostic& mistake : mistakes)
    for (KernelBenchTask& task : tasks)
      if (fs::path(mistake.file) == into / task.id / "task.yaml")
        refuse(into / task.id, mistake.message, task);
}

int import_tasks(const Options& options, CommandContext& context) {
  if (options.what != "kernelbench")
    throw Error("`" + options.what + "` is nothing that can be imported: kernelbench", kExitUsage);
  for (const int level : options.levels)
    if (level < 1 || level > 3) throw Error("--level: 1, 2 or 3", kExitUsage);
  const fs::path into = options.into;
  std::vector<KernelBenchTask> tasks = find_kernelbench(options.checkout, options.levels);
  std::vector<std::string> kept;
  std::erase_if(tasks, [&](const KernelBenchTask& task) {
    const bool there = path_exists(into / task.id / "task.yaml");
    if (there) kept.push_back(task.id);
    return there;
  });
  describe_tasks(tasks, options.unsandboxed,
                 [&](std::size_t done) { print_error("described %zu of %zu\n", done, tasks.size()); });
  std::vector<task::Task> written;
  for (KernelBenchTask& task : tasks)
    if (task.refused.empty())
      if (std::optional<task::Task> one = write_task(into / task.id, task))
        written.push_back(std::move(*one));
  compile_all(written, tasks, into);
  Json imported = Json::array(), refused = Json::array();
  for (const KernelBenchTask& task : tasks) {
    if (task.refused.empty())
      imported.push_back(task.id);
    else
      refused.push_back({{"task", task.id}, {"file", task.file.string()}, {"why", task.refused}});
  }
  if (context.json) {
    print_json(context, {{"imported", imported}, {"there_already", kept}, {"refused", refused}});
  } else {
    for (const Json& one : refused)
      print("%s: refused: %s\n", one.at("file").get<std::string>(), one.at("why").get<std::string>());
    print("%zu tasks imported into %s, %zu refused, %zu were there already\n", imported.size(), into.string(),
          refused.size(), kept.size());
  }
  return refused.empty() ? kExitOk : kExitFailed;
}

}  // namespace

void add_import(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, context, "import", "Makes folders of tasks of other people's",
                                  "warpsmith import kernelbench ../KernelBench --level 1 --into tasks",
                                  [options, &context] { return import_tasks(*options, context); });
  command->add_option("WHAT", options->what, "kernelbench")->required();
  command->add_option("PATH", options->checkout, "A checkout of KernelBench")->required();
  command->add_option("--into", options->into, "Folder that the tasks' folders come to lie in")->required();
  command->add_option("--level", options->levels, "This level alone, 1 to 3 (may be given again)")
      ->allow_extra_args(false);
  command->add_flag("--unsandboxed", options->unsandboxed, "Go on where there is no sandbox");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

// `warpsmith tasks PATH`: what tasks a folder or a checkout of KernelBench holds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "kernelbench_tasks.h"
#include "print.h"
#include "tasks_synthesize.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/task/task.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string path;
  std::vector<int> levels;
  std::string device = "cpu";
  bool unsandboxed = false;
};

std::uint64_t bytes_of(const std::vector<task::TensorSpec>& tensors, const task::Dims& dims) {
  std::uint64_t all = 0;
  for (const task::TensorSpec& tensor : tensors) {
    std::uint64_t bytes = task::size_of(tensor.dtype);
    for (const std::int64_t size : task::memory_shape_at(tensor, dims))
      bytes *= static_cast<std::uint64_t>(size);
    all += bytes;
  }
  return all;
}

std::optional<double> flops_of(const task::Task& task, const task::Dims& dims) {
  if (!task.flops) return std::nullopt;
  return task.flops->evaluate_real(task::dims_scope(dims));
}

Json json_of(const task::Task& task, const std::string& device) {
  const task::Task timed = task::on_device(task, device);
  const task::Dims& dims = timed.timing.front();
  std::size_t data = 0;
  for (const task::TensorSpec& input : task.inputs) data += input.role == task::Role::kData ? 1 : 0;
  Json json = {{"task", task.id},
               {"title", task.title},
               {"level", task.level},
               {"folder", task.folder.string()},
               {"module", !task.module.empty()},
               {"inputs", data},
               {"parameters", task.inputs.size() - data},
               {"shape", dims},
               {"bytes", bytes_of(task.inputs, dims) + bytes_of(task.outputs, dims)},
               {"degenerate", task.degenerate}};
  if (const auto flops = flops_of(timed, dims)) json["flops"] = *flops;
  return json;
}

std::string line_of(const Json& task) {
  return fmt::format(
      "{:<52} level {}  {} input{}, {} parameter{} or buffer{}, {}{}{}\n", task.at("task").get<std::string>(),
      task.at("level").get<int>(), task.at("inputs").get<int>(), task.at("inputs") == 1 ? "" : "s",
      task.at("parameters").get<int>(), task.at("parameters") == 1 ? "" : "s",
      task.at("parameters") == 1 ? "" : "s", format_size(task.at("bytes").get<std::uint64_t>()),
      task.contains("flops") && task.at("flops") > 0
          ? fmt::format(", {:.3g} GFLOP", task.at("flops").get<double>() / 1e9)
          : "",
      task.at("degenerate") == "" ? "" : ", degenerate");
}

int tasks(const Options& options, CommandContext& context) {
  if (options.path.empty())
    throw Error("PATH: name a folder of tasks, or a checkout of KernelBench", kExitUsage);
  for (const int level : options.levels)
    if (level < 1 || level > 3) throw Error("--level: 1, 2 or 3", kExitUsage);
  fs::path folder = options.path;
  Json refused = Json::array();
  if (is_kernelbench(folder)) {
    const CachedTasks all = kernelbench_tasks(folder, options.levels, options.unsandboxed);
    folder = all.folder;
    for (const KernelBenchTask& task : all.tasks)
      if (!task.refused.empty())
        refused.push_back({{"task", task.id}, {"file", task.file.string()}, {"why", task.refused}});
  } else if (!options.levels.empty()) {
    throw Error("--level: " + options.path + " is no checkout of KernelBench", kExitUsage);
  }
  Diagnostics mistakes;
  const std::vector<task::Task> found = task::load_tasks(folder, mistakes);
  Json list = Json::array();
  for (const task::Task& task : found) list.push_back(json_of(task, options.device));
  print_diagnostics(mistakes);
  if (context.json) {
    print_json(context,
               {{"folder", folder.string()}, {"tasks", std::move(list)}, {"refused", std::move(refused)}});
  } else {
    std::string text;
    for (const Json& task : list) text += line_of(task);
    for (const Json& one : refused)
      text += one.at("file").get<std::string>() + ": no task: " + one.at("why").get<std::string>() + "\n";
    text += fmt::format("{} tasks in {}", found.size(), folder.string());
    text += refused.empty() ? "\n" : fmt::format("; {} modules are none\n", refused.size());
    print_text(stdout, text);
  }
  return mistakes.empty() ? kExitOk : kExitFailed;
}

}  // namespace

void add_tasks(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, context, "tasks", "Lists the tasks of a folder, or of a checkout of KernelBench",
      "warpsmith tasks ../KernelBench --level 1", [options, &context] { return tasks(*options, context); });
  add_tasks_synthesize(*command, context);
  // A subcommand's action is set first.
  command->callback([command, options, &context] {
    if (command->get_subcommands().empty())
      context.action = [options, &context] { return tasks(*options, context); };
  });
  command->add_option("PATH", options->path, "A folder of tasks, or a checkout of KernelBench");
  command->add_option("--level", options->levels, "This level of KernelBench alone (may be given again)")
      ->allow_extra_args(false);
  command->add_option("--device", options->device, "Whose shapes are told: `cpu`, or a GPU type");
  command->add_flag("--unsandboxed", options->unsandboxed, "Go on where there is no sandbox");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

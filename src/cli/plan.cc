// `warpsmith plan`: stages, rounds, jobs and shards of a workflow, and for each stage why it will or will not
// run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "gpu_types.h"
#include "load_options.h"
#include "plan_cost.h"
#include "plan_table.h"
#include "print.h"
#include "table.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/model_memory.h"
#include "warpsmith/controller/run_folder.h"
#include "warpsmith/controller/site_executor.h"
#include "warpsmith/plan/plan.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/workflow/devices.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string file, run, site, deadline;
  std::vector<std::string> overrides;
  plan::Selection selection;
  std::optional<std::uint64_t> seed;
  bool graph = false;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "\"";
}

void print_graph(const workflow::WorkflowSpec& spec, const std::vector<plan::StagePlan>& plans) {
  print("digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", quoted(spec.name).c_str());
  for (std::size_t i = 0; i < spec.stages.size(); ++i) {
    const workflow::StageSpec& stage = spec.stages[i];
    const bool runs = plans[i].action == plan::Action::kRun || plans[i].action == plan::Action::kResume;
    const std::string label =
        stage.name + "\n" + stage.kind + "\n" + std::string(plan::to_string(plans[i].action));
    const std::string escaped = replaced(quoted(label), "\n", "\\n");
    print("  %s [label=%s%s];\n", quoted(stage.name).c_str(), escaped.c_str(),
          runs ? ", style=bold" : ", style=dashed");
    for (const std::string& needed : stage.needs)
      print("  %s -> %s;\n", quoted(needed).c_str(), quoted(stage.name).c_str());
  }
  print("}\n");
}

Json plan_json(const workflow::WorkflowSpec& spec, const std::vector<plan::StagePlan>& plans,
               const PlanCost& cost, const TypeCosts& types) {
  Json list = Json::array();
  for (std::size_t i = 0; i < spec.stages.size(); ++i) {
    const workflow::StageSpec& stage = spec.stages[i];
    const plan::StagePlan& p = plans[i];
    const Extent extent = extent_of(stage);
    Json changes = Json::array();
    for (const plan::Change& c : p.changes)
      changes.push_back({{"path", c.path}, {"before", c.before}, {"after", c.after}});
    Json one = {{"stage", stage.name},
                {"kind", stage.kind},
                {"needs", stage.needs},
                {"action", plan::to_string(p.action)},
                {"reason", p.reason},
                {"changes", std::move(changes)},
                {"hash", p.hash},
                {"device", stage.wanted_device.empty() ? stage.device : stage.wanted_device},
                {"device_found", workflow::to_string(stage.device_found)},
                {"rounds", extent.rounds},
                {"jobs", extent.jobs},
                {"shards", extent.shards},
                {"items", extent.items},
                {"upper_bound", extent.upper_bound},
                {"open", extent.open},
                {"cost", to_json(cost.stages[i])}};
    if (!stage.auto_device.empty()) one["auto_device"] = stage.auto_device;
    const controller::ModelMemory memory = controller::model_memory(stage);
    if (memory.training) one["gpu_memory"]["training"] = memory.training->all();
    if (memory.sampling) one["gpu_memory"]["sampling"] = memory.sampling->all();
    list.push_back(std::move(one));
  }
  return {{"workflow", spec.name},
          {"stages", std::move(list)},
          {"cost", total_json(cost)},
          {"gpu_types", to_json(types)}};
}

int plan_command(const Options& options, CommandContext& context) {
  const double deadline_s = deadline_seconds(options.deadline);
  workflow::LoadResult loaded = workflow::load_workflow(
      options.file, with_folders({.overrides = options.overrides, .seed = options.seed, .base_folder = {}}));
  if (!loaded.spec) throw InvalidInput(loaded.mistakes);
  workflow::WorkflowSpec& spec = *loaded.spec;
  if (const Diagnostics mistakes = plan::check_selection(spec, options.selection); !mistakes.empty())
    throw InvalidInput(mistakes);
  const fs::path run = options.run.empty() ? context.results / spec.name : fs::path(options.run);
  std::string site = options.site;
  if (site.empty() && path_exists(run / "run.json")) site = read_run_json(run).value("site", "");
  const workflow::WorkflowSpec of_file = spec;
  const std::optional<workflow::SiteSpec> place = controller::load_named_site(site);
  const std::vector<process::Gpu> gpus = controller::look_at_place(spec, place);
  const auto plans =
      plan::plan_stages(spec, plan::digest_datasets(spec), controller::read_history(run), options.selection);
  if (options.graph) {
    print_graph(spec, plans);
  } else {
    UsageFinder usages(run, context.results);
    const PlanCost cost = plan_cost(spec, plans, run, usages);
    const TypeCosts types = type_costs({.of_file = of_file,
                                        .spec = spec,
                                        .plans = plans,
                                        .site = place ? &*place : nullptr,
                                        .machine = controller::stocks_of(gpus),
                                        .cpus = static_cast<int>(process::allowed_cpus().size()),
                                        .deadline_s = deadline_s},
                                       usages);
    if (context.json)
      print_json(context, plan_json(spec, plans, cost, types));
    else
      print_text(stdout, plan_text({.spec = spec, .plans = plans, .cost = cost, .types = types, .gpus = gpus},
                                   context, terminal_size(stdout).columns));
  }
  for (const Diagnostic& note : loaded.notes) print_error("note: %s\n", to_string(note).c_str());
  const bool refused = std::any_of(plans.begin(), plans.end(), [](const plan::StagePlan& one) {
    return one.action == plan::Action::kBlocked;
  });
  return refused ? kExitUsage : kExitOk;  // as `run` would end
}

}  // namespace

void add_plan(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, context, "plan", "Shows what a run would do, and why",
                                  "warpsmith plan workflows/quickstart.yaml --set params.sft_steps=600",
                                  [options, &context] { return plan_command(*options, context); });
  expect(Word::kWorkflow, command->add_option("FILE", options->file, "Workflow file"))->required();
  add_override_options(*command, options->overrides);
  add_seed_option(*command, options->seed);
  command->add_option("--run-dir", options->run,
                      "Folder of the run that would go on (default: results/<name>)");
  command->add_option(
      "--site", options->site,
      "Site file, or its name: where it would run (default: the run's own, else this machine)");
  command->add_option("--from", options->selection.from, "These stages and those that need them")
      ->allow_extra_args(false);
  command->add_option("--only", options->selection.only, "These stages alone")->allow_extra_args(false);
  command->add_option("--until", options->selection.until, "These stages and those that they need")
      ->allow_extra_args(false);
  command->add_option("--force", options->selection.force, "Run these although they are up to date")
      ->allow_extra_args(false);
  command
      ->add_option("--accept", options->selection.accept, "Count the newest results of these as up to date")
      ->allow_extra_args(false);
  add_deadline_option(*command, options->deadline);
  command->add_flag("--graph", options->graph, "As a graph in DOT");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

// `warpsmith sweep RUN --gpu L40,H100`: the best kernels of a run, measured over GPU types. Writes a workflow
// that does what workflows/portability.yaml does, and goes the way of `warpsmith run`.
#include <CLI/CLI.hpp>
#include <cctype>
#include <memory>
#include <set>

#include "gpu_types.h"
#include "load_options.h"
#include "print.h"
#include "run.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/run_folder.h"
#include "warpsmith/controller/site_executor.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/records/verdict.h"
#include "warpsmith/workflow/load.h"
#include "warpsmith/workflow/other_run.h"
#include "warpsmith/workflow/sweep.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string run, select = "best", deadline;
  std::vector<std::string> gpus;
  RunOptions as_run;
};

void check_types(const std::vector<std::string>& gpus) {
  std::set<std::string> seen;
  for (const std::string& gpu : gpus) {
    if (!is_identifier(gpu)) throw Error("--gpu: `" + gpu + "` is no GPU type, such as H100", kExitUsage);
    if (!seen.insert(gpu).second) throw Error("--gpu: " + gpu + " stands there twice", kExitUsage);
  }
}

// The run's workflow as it was read, with what its command line changed.
workflow::WorkflowSpec workflow_of(const fs::path& run) {
  const Json json = read_run_json(run);
  workflow::LoadResult loaded = workflow::load_workflow(
      run / "workflow.yaml",
      with_folders({.overrides = json.value("overrides", std::vector<std::string>{}),
                    .seed = json.value("seed", std::uint64_t{1}),
                    .base_folder = fs::path(json.value("workflow_file", "")).parent_path(),
                    .refuse_idle_gpus = false}));
  if (!loaded.spec) throw InvalidInput(std::move(loaded.mistakes));
  return std::move(*loaded.spec);
}

// A workflow's name from that of a run's folder, which may hold anything.
std::string sweep_name(const fs::path& run) {
  constexpr std::string_view kEnding = "-sweep";
  constexpr std::size_t kLongest = 64;
  std::string name = run.filename().string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
  if (!is_identifier(name)) name = "r" + name;
  return name.substr(0, kLongest - kEnding.size()).append(kEnding);
}

// What measuring would take on each type; before anything runs.
TypeCosts costs_of(const RunOptions& as_run, double deadline_s, const CommandContext& context) {
  workflow::LoadResult loaded = workflow::load_workflow(as_run.file, with_folders({}));
  if (!loaded.spec) throw InvalidInput(std::move(loaded.mistakes));
  const workflow::WorkflowSpec of_file = *loaded.spec;
  std::string site = as_run.site;
  if (site.empty() && path_exists(fs::path(as_run.run_dir) / "run.json"))
    site = read_run_json(as_run.run_dir).value("site", "");
  const std::optional<workflow::SiteSpec> place = controller::load_named_site(site);
  const std::vector<process::Gpu> gpus = controller::look_at_place(*loaded.spec, place);
  UsageFinder usages(as_run.run_dir, context.results);
  return type_costs({.of_file = of_file,
                     .spec = *loaded.spec,
                     .plans = plan::plan_stages(*loaded.spec, plan::digest_datasets(*loaded.spec),
                                                controller::read_history(as_run.run_dir)),
                     .site = place ? &*place : nullptr,
                     .machine = controller::stocks_of(gpus),
                     .cpus = static_cast<int>(process::allowed_cpus().size()),
                     .deadline_s = deadline_s},
                    usages);
}

int sweep(const Options& options, CommandContext& context) {
  check_types(options.gpus);
  const double deadline_s = deadline_seconds(options.deadline);
  const fs::path run = absolute_folder(find_run(context, options.run));
  if (const std::string lack = workflow::lack_of_run(run); !lack.empty()) throw Error(lack, kExitUsage);
  const workflow::WorkflowSpec source = workflow_of(run);
  const workflow::StageSpec* like = workflow::measuring_stage(source);
  if (like == nullptr || like->dataset.folder.empty())
    throw Error("the workflow of " + run.string() + " names no dataset", kExitUsage);
  const std::string name = sweep_name(run);
  RunOptions as_run = options.as_run;
  const fs::path folder = choose_folder(as_run, context, name);
  make_folders(folder);
  const fs::path file = folder / "sweep.yaml";
  write_file_atomic(file, workflow::sweep_yaml({.name = name,
                                                .run = run.lexically_relative(absolute_folder(folder)),
                                                .gpus = options.gpus,
                                                .select = options.select},
                                               *like));
  as_run.file = file.string();
  as_run.run_dir = folder.string();
  as_run.command = command_line();
  const TypeCosts costs = costs_of(as_run, deadline_s, context);
  as_run.answer["gpu_types"] = to_json(costs);
  for (const std::string& line : type_lines(costs)) print_error("%s\n", line);
  const int code = run_workflow(as_run, context);
  if (code != kExitOk || measured_something(folder)) return code;
  print_error("The sweep measured nothing: no candidate has a verdict of one of these GPU types.\n");
  return kExitFailed;
}

}  // namespace

bool measured_something(const fs::path& run) {
  for (const fs::path& stage : folder_entries(run / "stages"))
    for (const fs::path& version : folder_entries(stage)) {
      if (!path_exists(version / "output.json")) continue;
      bool measured = false;
      use_json(version / "output.json", [&](const Json& output) {
        for (const Json& candidate : output.value("candidates", Json::array())) {
          const auto verdict = parse_verdict(candidate.at("measurement").value("verdict", ""));
          measured |= verdict && *verdict != Verdict::kNotMeasured && *verdict != Verdict::kUnsupported;
        }
      });
      if (measured) return true;
    }
  return false;
}

void add_sweep(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, context, "sweep", "Measures the best kernels of a run over GPU types",
                                  "warpsmith sweep results/quickstart --gpu L40,H100 --site mine",
                                  [options, &context] { return sweep(*options, context); });
  expect(Word::kRun, command->add_option("RUN", options->run, "Name or folder of the run"))->required();
  command->add_option("--gpu", options->gpus, "GPU types, as the site file names them: L40,H100")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->required();
  command
      ->add_option("--select", options->select, "best: the fastest of each task; all: every correct program")
      ->check(CLI::IsMember({"best", "all"}));
  add_deadline_option(*command, options->deadline);
  command->add_flag("--new", options->as_run.fresh, "Make another run instead of going on with the last");
  command->add_option("--run-dir", options->as_run.run_dir,
                      "Folder of the sweep's run (default: results/<name of the run>-sweep)");
  add_place_options(*command, options->as_run, context);
}

}  // namespace warpsmith::cli

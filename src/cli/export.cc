// warpsmith export [RUN] --format csv|json|kernelbench: a run's tables and figures for other tools.
#include <CLI/CLI.hpp>
#include <memory>

#include "named_results.h"
#include "print.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/report/kernelbench.h"
#include "warpsmith/report/report.h"
#include "warpsmith/store/results.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string run, format = "csv", table, output, into, stage;
  bool all_versions = false;
};

// Options that say nothing with the format that was asked for.
void check(const Options& options) {
  const bool kernelbench = options.format == "kernelbench";
  if (options.format != "csv" && !options.table.empty())
    throw Error("--table goes with --format csv; json holds all tables", kExitUsage);
  if (kernelbench && options.into.empty())
    throw Error("--format kernelbench writes several files: give their folder as --into", kExitUsage);
  if (kernelbench && (!options.output.empty() || options.all_versions))
    throw Error("--output and --all-versions do not go with --format kernelbench", kExitUsage);
  if (!kernelbench && (!options.into.empty() || !options.stage.empty()))
    throw Error("--into and --stage go with --format kernelbench", kExitUsage);
}

int export_kernelbench(const Options& options, const store::Results& results) {
  const report::KernelBenchFiles files = report::kernelbench_files(results, options.stage);
  for (const report::ExportedFile& file : files.files) {
    const fs::path path = options.into / file.path;
    make_folders(path.parent_path());
    write_file_atomic(path, file.content);
  }
  for (const report::KernelBenchFiles::Run& run : files.runs) {
    print("runs/%s: stage %s, %zu problems, %zu samples, %zu correct\n", run.name, files.stage, run.problems,
          run.samples, run.correct);
    if (run.without_time > 0)
      print_error(
          "warpsmith: %zu of these problems have no time of eager; KernelBench's analysis leaves such "
          "problems out of its denominators\n",
          run.without_time);
    print(
        "  python scripts/benchmark_eval_analysis.py run_name=%s level=%d hardware=%s "
        "baseline=baseline_time_torch\n",
        run.name, run.level, files.hardware);
  }
  return kExitOk;
}

int export_run(const Options& options, const CommandContext& context) {
  check(options);
  store::Results results = named_results(context, options.run).results;
  if (!options.all_versions) results = store::current_versions(std::move(results));
  if (options.format == "kernelbench") return export_kernelbench(options, results);
  const std::string text = options.format == "csv"
                               ? report::csv(results, options.table.empty() ? "measurements" : options.table)
                               : report::json(results);
  if (options.output.empty())
    print_data(text);
  else
    write_file_atomic(options.output, text);
  return kExitOk;
}

}  // namespace

void add_export(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, context, "export", "Writes a run's tables and figures for other tools",
                                  "warpsmith export quickstart --table samples --output samples.csv",
                                  [options, &context] { return export_run(*options, context); });
  add_results_argument(*command, options->run);
  command
      ->add_option(
          "--format", options->format,
          "csv: one table; json: all tables and figures; kernelbench: files for KernelBench's scripts")
      ->check(CLI::IsMember({"csv", "json", "kernelbench"}));
  command
      ->add_option("--table", options->table,
                   "Of csv (default: measurements, where a program that a stage has measured before has no "
                   "new row; samples: every program that a model wrote)")
      ->check(CLI::IsMember(report::table_names()));
  command->add_option("--output", options->output, "File to write (default: standard output)");
  command->add_option("--into", options->into,
                      "Of kernelbench: folder to write in, such as a checkout of KernelBench");
  command->add_option("--stage", options->stage,
                      "Of kernelbench: stage whose samples are written (default: the last that has some)");
  command->add_flag("--all-versions", options->all_versions,
                    "Also what stages left before they were changed, told apart by hash8");
}

}  // namespace warpsmith::cli

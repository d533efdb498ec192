// warpsmith export [RUN] --format csv|json: a run's tables and figures for other tools.
#include <CLI/CLI.hpp>
#include <memory>

#include "attempts.h"
#include "print.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/report/report.h"
#include "warpsmith/store/results.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string run, format = "csv", table, output;
  bool all_versions = false;
};

int export_run(const Options& options, const CommandContext& context) {
  if (options.format == "json" && !options.table.empty())
    throw Error("--table goes with --format csv; json holds all tables", kExitUsage);
  const fs::path folder = find_run(context, options.run);
  aggregate_run(folder);
  store::Results results = store::read_results(folder / "results.h5");
  if (!options.all_versions) results = store::current_versions(std::move(results));
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
  command->add_option("RUN", options->run, "Name or folder of the run (default: the one changed last)");
  command->add_option("--format", options->format, "csv: one table; json: all tables and figures")
      ->check(CLI::IsMember({"csv", "json"}));
  command
      ->add_option("--table", options->table,
                   "Of csv (default: measurements, where a program that a stage has measured before has no "
                   "new row; samples: every program that a model wrote)")
      ->check(CLI::IsMember(report::table_names()));
  command->add_option("--output", options->output, "File to write (default: standard output)");
  command->add_flag("--all-versions", options->all_versions,
                    "Also what stages left before they were changed, told apart by hash8");
}

}  // namespace warpsmith::cli

// warpsmith export [RUN] --format csv|json: a run's measurements and figures for other tools.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "attempts.h"
#include "warpsmith/base/files.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/report/report.h"
#include "warpsmith/store/results.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string run, format = "csv", output;
  bool all_versions = false;
};

int export_run(const Options& options, const CommandContext& context) {
  const fs::path folder = find_run(context, options.run);
  aggregate_run(folder);
  store::Results results = store::read_results(folder / "results.h5");
  if (!options.all_versions) results = store::current_versions(std::move(results));
  const std::string text = options.format == "csv" ? report::csv(results) : report::json(results);
  if (options.output.empty())
    std::cout << text;
  else
    write_file_atomic(options.output, text);
  return kExitOk;
}

}  // namespace

void add_export(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, context, "export", "Writes a run's measurements and figures for other tools",
                  "warpsmith export quickstart --format csv --output speedups.csv",
                  [options, &context] { return export_run(*options, context); });
  command->add_option("RUN", options->run, "Name or folder of the run (default: the one changed last)");
  command->add_option("--format", options->format, "csv: one line a measurement; json: figures too")
      ->check(CLI::IsMember({"csv", "json"}));
  command->add_option("--output", options->output, "File to write (default: standard output)");
  command->add_flag("--all-versions", options->all_versions,
                    "Also what stages left before they were changed, told apart by hash8");
}

}  // namespace warpsmith::cli

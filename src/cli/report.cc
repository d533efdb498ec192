// warpsmith report [RUN]: writes report.html, one file that works offline.
#include <CLI/CLI.hpp>
#include <memory>

#include "print.h"
#include "warpsmith/base/files.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/attempts.h"
#include "warpsmith/report/report.h"
#include "warpsmith/store/results.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string run, output;
};

int write_report(const Options& options, const CommandContext& context) {
  const fs::path folder = find_run(context, options.run);
  const std::string page = report::html(controller::current_results(folder));
  const fs::path output = options.output.empty() ? folder / "report.html" : fs::path(options.output);
  write_file_atomic(output, page);
  if (context.json)
    print_json(context, {{"report", output.string()}, {"results", (folder / "results.h5").string()}});
  else
    print("%s\n", output.string());
  return kExitOk;
}

}  // namespace

void add_report(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, context, "report", "Writes a run's report: one HTML file that works offline",
                  "warpsmith report quickstart --output report.html",
                  [options, &context] { return write_report(*options, context); });
  command->add_option("RUN", options->run, "Name or folder of the run (default: the one changed last)");
  command->add_option("--output", options->output,
                      "File to write (default: report.html in the run's folder)");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

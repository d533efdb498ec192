// warpsmith aggregate [RUN]: brings results.h5 up to date with the records and the journal, or rebuilds it.
#include <CLI/CLI.hpp>
#include <memory>

#include "print.h"
#include "warpsmith/base/text.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/attempts.h"
#include "warpsmith/store/results.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string run;
  bool rebuild = false;
};

int aggregate_command(const Options& options, const CommandContext& context) {
  const std::filesystem::path folder = find_run(context, options.run);
  const store::Aggregated done = controller::aggregate_run(folder, options.rebuild);
  const bool kept = !done.written && !done.reason.empty();  // there is less to write than it holds
  if (context.json) {
    print_json(context, {{"file", (folder / "results.h5").string()},
                         {"written", done.written},
                         {"reason", done.reason},
                         {"measurements", done.measurements},
                         {"candidates", done.candidates},
                         {"attempts", done.attempts},
                         {"seconds", done.seconds}});
    return kept ? kExitFailed : kExitOk;
  }
  const std::string file = (folder / "results.h5").string();
  if (kept) {
    print("%s: kept as it was (%s)\n", file, done.reason);
    return kExitFailed;
  }
  print("%s: %s, %d measurements of %d programs\n", file,
        done.written ? "written (" + done.reason + ")" : "up to date", done.measurements, done.candidates);
  return kExitOk;
}

}  // namespace

void add_aggregate(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, context, "aggregate",
                                  "Brings a run's results.h5 up to date with its records and its journal",
                                  "warpsmith aggregate quickstart --rebuild",
                                  [options, &context] { return aggregate_command(*options, context); });
  add_run_argument(*command, options->run);
  command->add_flag("--rebuild", options->rebuild, "Write the file anew even where nothing has changed");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

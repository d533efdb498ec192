// `warpsmith`: the controller and every user command.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "commands.h"
#include "warpsmith/base/log.h"
#include "warpsmith/cli/command.h"

int main(int argc, char** argv) {
  using namespace warpsmith;
  start_logging("warpsmith");

  cli::CommandContext context;
  context.terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* no_colour = std::getenv("NO_COLOR");
  context.colour = context.terminal && (no_colour == nullptr || *no_colour == '\0');

  CLI::App app("Trains a language model to write fast CUDA kernels, and measures what it writes.",
               "warpsmith");
  app.require_subcommand(1);
  app.set_version_flag("--version", "warpsmith " WARPSMITH_VERSION);
  std::string results = context.results.string();
  app.add_option("--results", results, "Folder that holds the runs")->envname("WARPSMITH_RESULTS");
  app.footer(
      "Exit codes: 0 done; 1 something in the run failed; 2 a mistake in a file or on the command line;\n"
      "3 this machine lacks something (a full disk, a missing program); 4 another controller has the run;\n"
      "130 interrupted, the same command goes on.\n"
      "`warpsmith COMMAND --help` shows an example of each command.");
  cli::add_commands(app, context);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kExitOk : kExitUsage;
  }
  context.results = results;
  try {
    return context.action ? context.action() : kExitUsage;
  } catch (const InvalidInput& e) {
    cli::print_diagnostics(e.diagnostics());
    return e.exit_code();
  } catch (const Error& e) {
    std::fprintf(stderr, "warpsmith: %s\n", e.what());
    return e.exit_code();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "warpsmith: internal error: %s\n", e.what());
    return kExitEnvironment;
  }
}

// `warpsmith`: the controller and every user command.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "commands.h"
#include "mistyped.h"
#include "print.h"
#include "version.h"
#include "warpsmith/base/log.h"
#include "warpsmith/cli/command.h"

int main(int argc, char** argv) {
  using namespace warpsmith;
  start_logging("warpsmith");

  cli::CommandContext context;
  context.build = cli::build();
  context.terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* no_colour = std::getenv("NO_COLOR");
  context.colour = context.terminal && (no_colour == nullptr || *no_colour == '\0');

  CLI::App app("Trains a language model to write fast CUDA kernels, and measures what it writes.",
               "warpsmith");
  app.require_subcommand(1);
  app.fallthrough();  // --results may also stand behind the command
  app.set_version_flag("--version", cli::kVersionText);
  std::string results = context.results.string();
  app.add_option("--results", results, "Folder that holds the runs")->envname("WARPSMITH_RESULTS");
  app.footer(
      "Exit codes: 0 done; 1 something in the run failed, or a sweep measured nothing; 2 a mistake in a file "
      "or\n"
      "on the command line, or a stage cannot run here; 3 this machine lacks something (a full disk, a "
      "missing\n"
      "program); 4 another controller has the run; 130 interrupted, the same command goes on.\n"
      "`warpsmith COMMAND --help` shows an example of each command.");
  cli::add_commands(app, context);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    const std::string unknown = cli::unknown_word(app, {argv + 1, argv + argc});
    cli::print_error("warpsmith: %s\n", unknown.empty() ? e.what() : unknown);
    return kExitUsage;
  }
  context.results = results;
  if (std::error_code gone; std::filesystem::current_path(gone).empty()) {
    cli::print_error("warpsmith: the working folder cannot be used: %s (cd to one that exists)\n",
                     gone.message());
    return kExitEnvironment;
  }
  try {
    return context.action ? context.action() : kExitUsage;
  } catch (const InvalidInput& e) {
    cli::print_diagnostics(e.diagnostics());
    return e.exit_code();
  } catch (const Error& e) {
    cli::print_error("warpsmith: %s\n", e.what());
    return e.exit_code();
  } catch (const std::filesystem::filesystem_error& e) {
    cli::print_error("warpsmith: cannot use %s: %s\n", e.path1().string(), e.code().message());
    return kExitEnvironment;
  } catch (const std::exception& e) {
    cli::print_error("warpsmith: internal error: %s\n", e.what());
    return kExitEnvironment;
  }
}

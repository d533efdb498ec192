// `warpsmith cancel [RUN]`: ends a run's controller in an orderly way; the run can go on later.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <thread>

#include "warpsmith/cli/command.h"
#include "warpsmith/cli/run_folder.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string run;
  double wait_s = 30;
};

int cancel(const Options& options, CommandContext& context) {
  const fs::path run = find_run(context, options.run);
  const auto holder = RunLock::holder(run);
  Json answer = {{"run", run.string()}, {"was_running", holder.has_value()}};
  if (!holder) {
    if (context.json)
      print_json(context, answer);
    else
      std::printf("%s: no controller on this host has it\n", run.string().c_str());
    return kExitOk;
  }
  if (::kill(*holder, SIGTERM) != 0)
    throw Error("cannot signal process " + std::to_string(*holder) + ", which has " + run.string());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.wait_s);
  while (RunLock::holder(run) == holder) {
    if (std::chrono::steady_clock::now() > deadline)
      throw Error("process " + std::to_string(*holder) +
                      " has not ended yet; it was asked to (`kill -9` is safe, too)",
                  kExitFailed);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (context.json)
    print_json(context, answer);
  else
    std::printf("%s: ended; what was finished is kept, `warpsmith run` goes on\n", run.string().c_str());
  return kExitOk;
}

}  // namespace

void add_cancel(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, context, "cancel", "Ends a run's controller; the run can go on later",
                  "warpsmith cancel quickstart", [options, &context] { return cancel(*options, context); });
  command->add_option("RUN", options->run, "Name or folder of the run (default: the one changed last)");
  command->add_option("--wait", options->wait_s, "Seconds to wait for its end")->capture_default_str();
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

// `warpsmith cancel [RUN]`: ends a run's controller in an orderly way; the run can go on later.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <thread>

#include "print.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/run_folder.h"
#include "warpsmith/controller/run_queue.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string run;
  double wait_s = 30;
  bool dry_run = false;
};

int show_queue(const fs::path& run, CommandContext& context) {
  const std::optional<workflow::SiteSpec> site = controller::site_of_run(run);
  std::size_t shards = 0;
  if (site) {
    const auto cluster = executor::open_cluster(program_folder(), site->conf);
    shards = controller::queue_of_run(*cluster, run).shards;
  }
  if (context.json)
    print_json(context, {{"run", run.string()}, {"queued", shards}});
  else
    print("%s: %zu shards in the queue\n", run.string().c_str(), shards);
  return kExitOk;
}

// Cancels what the run has in its cluster's queue and waits until Slurm says that nothing is left. Returns
// how many shards there were.
std::size_t empty_queue(const fs::path& run, double wait_s) {
  const std::optional<workflow::SiteSpec> site = controller::site_of_run(run);
  if (!site) return 0;
  const auto cluster = executor::open_cluster(program_folder(), site->conf);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_s);
  const controller::Queued before = controller::queue_of_run(*cluster, run);
  for (controller::Queued left = before; !left.arrays.empty();
       left = controller::queue_of_run(*cluster, run)) {
    if (std::chrono::steady_clock::now() > deadline)
      throw Error(
          std::to_string(left.arrays.size()) + " jobs of the run are still in the queue (`squeue --me`)",
          kExitFailed);
    for (const std::uint32_t array : left.arrays) cluster->cancel(std::to_string(array));
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return before.shards;
}

int cancel(const Options& options, CommandContext& context) {
  const fs::path run = find_run(context, options.run);
  if (options.dry_run) return show_queue(run, context);
  const auto holder = controller::RunLock::holder(run);
  Json answer = {{"run", run.string()}, {"was_running", holder.has_value()}};
  if (!holder) {
    const std::size_t queued = empty_queue(run, options.wait_s);
    answer["cancelled"] = queued;
    if (context.json)
      print_json(context, answer);
    else
      print("%s: no controller on this host has it%s\n", run.string().c_str(),
            queued > 0
                ? ("; " + std::to_string(queued) + " shards were cancelled, nothing is left in the queue")
                      .c_str()
                : "");
    return kExitOk;
  }
  if (::kill(*holder, SIGTERM) != 0)
    throw Error("cannot signal process " + std::to_string(*holder) + ", which has " + run.string());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.wait_s);
  while (controller::RunLock::holder(run) == holder) {
    if (std::chrono::steady_clock::now() > deadline)
      throw Error("process " + std::to_string(*holder) +
                      " has not ended yet; it was asked to (`kill -9` is safe, too)",
                  kExitFailed);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  answer["cancelled"] = empty_queue(run, options.wait_s);  // of a controller that detached
  if (context.json)
    print_json(context, answer);
  else
    print("%s: ended; what was finished is kept, `warpsmith run` goes on\n", run.string().c_str());
  return kExitOk;
}

}  // namespace

void add_cancel(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, context, "cancel", "Ends a run's controller; the run can go on later",
                  "warpsmith cancel quickstart", [options, &context] { return cancel(*options, context); });
  add_run_argument(*command, options->run);
  command->add_option("--wait", options->wait_s, "Seconds to wait for its end")->capture_default_str();
  command->add_flag("--dry-run", options->dry_run,
                    "Only say how many shards the run has in its cluster's queue");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli

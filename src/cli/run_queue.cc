#include "run_queue.h"

#include <algorithm>

#include "site_executor.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/process/child.h"

namespace warpsmith::cli {

std::optional<workflow::SiteSpec> site_of_run(const fs::path& run) {
  if (!fs::exists(run / "run.json") || !fs::exists(run / "site.yaml")) return std::nullopt;
  if (read_json_file(run / "run.json").value("site", "").empty()) return std::nullopt;
  return load_named_site((run / "site.yaml").string());
}

Queued queue_of_run(executor::Cluster& cluster, const std::string& run_id) {
  const std::string prefix = token_prefix(run_id);
  Queued queued;
  for (const executor::SlurmTask& task : cluster.jobs()) {
    if (!task.name.starts_with(prefix) || executor::has_ended(task.state)) continue;
    queued.arrays.insert(task.array);
    queued.shards += std::max<std::size_t>(1, task.tasks.size());
  }
  return queued;
}

void refuse_to_leave_queue(const fs::path& run, const std::optional<workflow::SiteSpec>& to) {
  const std::optional<workflow::SiteSpec> from = site_of_run(run);
  if (!from || (to && to->conf == from->conf)) return;
  process::ChildSpec ask;
  ask.argv = {(program_folder() / "warpsmith").string(), "cancel", fs::absolute(run).string(), "--dry-run",
              "--json"};
  ask.limits.wall_s = 60;
  const process::ChildResult answer = process::run_child(ask);
  const std::string name = "the run " + run.string(), there = "the cluster of its site `" + from->name + "`";
  const Json queued = Json::parse(answer.out, nullptr, false);
  if (answer.ending != process::Ending::kExited || answer.exit_code != 0 || !queued.is_object())
    throw Error(name + " may have jobs on " + there + ", which cannot be asked (`warpsmith cancel " +
                    run.string() + " --dry-run` says why; if it is gone for good, remove " +
                    (run / "site.yaml").string() + ")",
                kExitBusy);
  if (const auto shards = queued.value("queued", std::size_t{0}); shards > 0)
    throw Error(name + " has " + std::to_string(shards) + " shards in the queue of " + there +
                    ": go on with them there, or `warpsmith cancel " + run.string() + "` before it moves",
                kExitBusy);
}

}  // namespace warpsmith::cli

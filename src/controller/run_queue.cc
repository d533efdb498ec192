#include "warpsmith/controller/run_queue.h"

#include <algorithm>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/controller/in_job.h"
#include "warpsmith/controller/run_folder.h"
#include "warpsmith/controller/site_executor.h"
#include "warpsmith/process/child.h"

namespace warpsmith::controller {

std::optional<workflow::SiteSpec> site_of_run(const fs::path& run) {
  if (!path_exists(run / "run.json") || !path_exists(run / "site.yaml")) return std::nullopt;
  if (read_run_json(run).value("site", "").empty()) return std::nullopt;
  return load_named_site((run / "site.yaml").string());
}

Queued queue_of_run(executor::Cluster& cluster, const fs::path& run) {
  const Json json = read_run_json(run);
  const std::string run_id = json.value("id", ""), prefix = token_prefix(run_id);
  const auto controller = json.value("controller_job", std::uint64_t{0});
  Queued queued;
  for (const executor::SlurmTask& task : cluster.jobs()) {
    const bool ours = task.name.starts_with(prefix) || task.name == successor_name(run_id) ||
                      (controller != 0 && task.job == controller);
    if (!ours || executor::has_ended(task.state)) continue;
    queued.arrays.insert(task.array);
    queued.shards += std::max<std::size_t>(1, task.tasks.size());
  }
  return queued;
}

namespace {

// Its last controller saw its jobs end. False where state.json is damaged: nobody knows.
bool ended_in_order(const fs::path& run) {
  if (!path_exists(run / "state.json")) return false;
  std::string state = "running";
  try {
    state = read_state_json(run).value("state", state);
  } catch (const BadContent&) {
    return false;  // whoever goes on with the run sets it aside
  }
  return state != "running" && state != "detached";
}

std::string last_line(const std::string& text) {
  const std::vector<std::string> lines = split(text, '\n');
  const auto last =
      std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) { return !line.empty(); });
  return last == lines.rend() ? "" : *last;
}

}  // namespace

void refuse_to_leave_queue(const fs::path& run, const std::string& site_name,
                           const std::optional<workflow::SiteSpec>& site) {
  if (!path_exists(run / "run.json") || ended_in_order(run)) return;
  const std::string old_name = read_run_json(run).value("site", "");
  if (old_name.empty() || old_name == site_name) return;
  const std::string who = "the run " + run.string(), where = "the cluster of its site `" + old_name + "`";
  std::string problem;
  try {
    const std::optional<workflow::SiteSpec> from = site_of_run(run);
    if (!from || (site && site->conf == from->conf)) return;
    process::ChildSpec ask;
    ask.argv = {(program_folder() / "warpsmith").string(), "cancel", fs::absolute(run).string(), "--dry-run",
                "--json"};
    ask.limits.wall_s = 60;
    const process::ChildResult answer = process::run_child(ask);
    const Json queued = Json::parse(answer.out, nullptr, false);
    if (answer.ending == process::Ending::kExited && answer.exit_code == kExitOk && queued.is_object()) {
      const auto shards = queued.value("queued", std::size_t{0});
      if (shards == 0) return;
      throw Error(who + " has " + std::to_string(shards) + " shards in the queue of " + where +
                      ": go on with them there, or `warpsmith cancel " + run.string() + "` before it moves",
                  kExitBusy);
    }
    problem = last_line(answer.err);
  } catch (const InvalidInput& e) {
    problem = e.what();
  }
  throw Error(who + " may have jobs on " + where + ", which cannot be asked: " + problem +
              " (if it is gone for good, remove " + (run / "site.yaml").string() + ")");
}

}  // namespace warpsmith::controller

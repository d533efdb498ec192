// What a run has in the queue of the cluster that it was last carried by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "warpsmith/executor/cluster.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::controller {

// The cluster of the run's site.yaml, by the name in its run.json; nothing where it runs on this machine, or
// has none yet. Throws InvalidInput for a bad site file.
std::optional<workflow::SiteSpec> site_of_run(const std::filesystem::path& run);

struct Queued {
  std::set<std::uint32_t> arrays;
  std::size_t shards = 0;
};

// What has not ended of the jobs whose names begin with the run's prefix, of the job that its controller runs
// in, and of that one's successor. Throws SlurmError.
Queued queue_of_run(executor::Cluster& cluster, const std::filesystem::path& run);

// Throws Error with kExitBusy where the run would move from a cluster to another place (no site: this
// machine) while that has jobs of it: their shards would be started twice; with kExitEnvironment where that
// cluster cannot be asked. A run that ended in an orderly way has none. Asks by `warpsmith cancel --dry-run`
// in a process of its own: libslurm serves one cluster a process.
void refuse_to_leave_queue(const std::filesystem::path& run, const std::string& site_name,
                           const std::optional<workflow::SiteSpec>& site);

}  // namespace warpsmith::controller

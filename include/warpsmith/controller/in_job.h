// The controller as a Slurm job of its own (`run --in-job`): how it goes on in the next one.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/executor/cluster.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::controller {

// The Slurm job that this process runs in. Throws Error with kExitUsage where it runs in none.
std::uint32_t own_job();

// The site of a controller in a job that was told none: WARPSMITH_SITE, else the cluster's name.
std::string site_of_job();

// The name of a job that is to go on with a run where Slurm does not requeue its controller's.
inline std::string successor_name(const std::string& run_id) { return "warpsmith-" + run_id; }

// The job that goes on with a run. It starts `command` in this process's working folder. Its output is
// relative to that: in an absolute path Slurm expands `%` and drops backslashes.
executor::SlurmJob successor_job(const workflow::SiteSpec& site, const std::string& run_id,
                                 const std::vector<std::string>& command);

// Makes sure that the controller goes on: requeues its job, which ends this process soon after, or, where
// Slurm does not requeue it, submits exactly one successor that waits for its end. `command`: as this process
// was called. Returns what was done, for people.
std::string hand_over(const workflow::SiteSpec& site, const std::string& run_id,
                      const std::vector<std::string>& command);

}  // namespace warpsmith::controller

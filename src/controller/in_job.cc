#include "warpsmith/controller/in_job.h"

#include <cmath>
#include <csignal>
#include <cstdlib>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/controller/site_executor.h"
#include "warpsmith/executor/batch.h"

namespace warpsmith::controller {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::uint32_t own_job() {
  const std::string id = variable("SLURM_JOB_ID");
  if (id.empty())
    throw Error(
        "--in-job is for a controller inside a Slurm job, and SLURM_JOB_ID is not set: "
        "`sbatch slurm/warpsmith.sbatch WORKFLOW` starts one",
        kExitUsage);
  return static_cast<std::uint32_t>(std::stoul(id));
}

std::string site_of_job() {
  const std::string named = variable("WARPSMITH_SITE");
  return named.empty() ? variable("SLURM_CLUSTER_NAME") : named;
}

executor::SlurmJob successor_job(const workflow::SiteSpec& site, const std::string& run_id,
                                 const std::vector<std::string>& command) {
  std::string script = "#!/bin/sh\nexec";
  for (const std::string& word : command) script += " " + executor::shell_word(word);
  executor::SlurmJob job = executor::job_at(site.controller, 0);
  job.name = successor_name(run_id);
  job.script = script + "\n";
  job.folder = fs::current_path();
  job.output = successor_name(run_id) + ".log";
  job.minutes = static_cast<std::uint32_t>(std::ceil(site.controller_time_s / 60));
  job.cpus = static_cast<std::uint32_t>(site.controller_cpus);
  job.memory_mib = site.controller_memory >> 20;
  job.warn_signal = SIGUSR1;
  job.warn_s = static_cast<int>(site.controller_warning_s);
  return job;
}

std::string hand_over(const workflow::SiteSpec& site, const std::string& run_id,
                      const std::vector<std::string>& command) {
  const std::uint32_t id = own_job();
  const auto cluster = executor::open_cluster(program_folder(), site.conf);
  try {
    cluster->requeue(id);
    return "Slurm job " + std::to_string(id) + " is requeued";
  } catch (const executor::SlurmError& e) {
    // Whether it is off for the cluster, the partition or this job: a successor does as well.
    log_info(std::string("not requeued: ") + e.what());
  }
  const std::string name = successor_name(run_id);
  for (const executor::SlurmTask& task : cluster->jobs())
    if (task.name == name && task.state == executor::SlurmState::kPending)
      return "Slurm job " + std::to_string(task.job) + " goes on with the run";
  executor::SlurmJob job = successor_job(site, run_id, command);
  job.dependency = "afterany:" + std::to_string(id);
  return "Slurm job " + std::to_string(cluster->submit(job)) + " goes on with the run";
}

}  // namespace warpsmith::controller

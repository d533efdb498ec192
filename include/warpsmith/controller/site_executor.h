// The executor that a run's site asks for: this machine, or a Slurm cluster by the module that is loaded for
// it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/process/gpus.h"
#include "warpsmith/run/executor.h"
#include "warpsmith/workflow/devices.h"
#include "warpsmith/workflow/site.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::controller {

struct SiteExecutor {
  std::optional<workflow::SiteSpec> site;  // nothing: this machine
  std::unique_ptr<run::Executor> executor;
  int slots = 1;                   // CPUs that shards may use
  std::uint64_t memory_bytes = 0;  // that shards may use on this machine; 0: on a cluster
  // Of each type that the site names, on usable nodes; or of this machine.
  std::map<std::string, std::size_t> gpus;
};

// `site`: what --site said; empty or "local": this machine. Throws InvalidInput for a bad site file.
std::optional<workflow::SiteSpec> load_named_site(const std::string& site);

// What a workflow's stages have there: devices of the site or of this machine, candidates of other runs
// (workflow/devices.h, plan/taken.h). Before anything is planned. Returns the GPUs of this machine that jobs
// may have (process::usable_gpus); looks for them only where jobs run here and the workflow asks for some.
std::vector<process::Gpu> look_at_place(workflow::WorkflowSpec& spec,
                                        const std::optional<workflow::SiteSpec>& site);

workflow::GpuStocks stocks_of(const std::vector<process::Gpu>& gpus);

// "`device: auto` is L40: this machine has 2 L40"; empty where no stage says auto, or none could be chosen.
std::string auto_device_text(const workflow::WorkflowSpec& spec);

// `gpus`: what look_at_place() returned. Throws Error with kExitEnvironment where the cluster or the module
// is missing.
SiteExecutor make_executor(std::optional<workflow::SiteSpec> site, const std::filesystem::path& run,
                           const std::string& run_id, const std::vector<process::Gpu>& gpus);

// What the tokens of a run's jobs begin with.
std::string token_prefix(const std::string& run_id);

}  // namespace warpsmith::controller

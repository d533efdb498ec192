// The executor that a run's site asks for: this machine, or a Slurm cluster by the module that is loaded for it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "warpsmith/run/executor.h"
#include "warpsmith/workflow/site.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::cli {

struct SiteExecutor {
  std::optional<workflow::SiteSpec> site;  // nothing: this machine
  std::unique_ptr<run::Executor> executor;
  int slots = 1;  // CPUs that shards may use
  std::map<std::string, std::size_t> gpus;  // of each type that the site names, on usable nodes
};

// `site`: what --site said; empty or "local": this machine. Throws InvalidInput for a bad site file.
std::optional<workflow::SiteSpec> load_named_site(const std::string& site);

// What a workflow's stages have there: devices of the site, candidates of other runs (workflow/devices.h,
// plan/taken.h). Before anything is planned.
void look_at_place(workflow::WorkflowSpec& spec, const std::optional<workflow::SiteSpec>& site);

// Throws Error with kExitEnvironment where the cluster or the module is missing.
SiteExecutor make_executor(std::optional<workflow::SiteSpec> site, const std::filesystem::path& run,
                           const std::string& run_id);

// What the tokens of a run's jobs begin with.
std::string token_prefix(const std::string& run_id);

}  // namespace warpsmith::cli

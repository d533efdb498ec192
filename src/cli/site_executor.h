// The executor that a run's site asks for: this machine, or a Slurm cluster by the module that is loaded for it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "warpsmith/run/executor.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::cli {

struct SiteExecutor {
  std::optional<workflow::SiteSpec> site;  // nothing: this machine
  std::unique_ptr<run::Executor> executor;
  int slots = 1;  // CPUs that shards may use
};

// `site`: what --site said; empty or "local": this machine. Throws InvalidInput for a bad site file, and Error with
// kExitEnvironment where the cluster or the module is missing.
std::optional<workflow::SiteSpec> load_named_site(const std::string& site);
SiteExecutor make_executor(std::optional<workflow::SiteSpec> site, const std::filesystem::path& run,
                           const std::string& run_id);

// What the tokens of a run's jobs begin with.
std::string token_prefix(const std::string& run_id);

}  // namespace warpsmith::cli

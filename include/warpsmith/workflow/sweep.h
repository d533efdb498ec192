// The workflow of a portability sweep: the best kernels of a run, measured over GPU types.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/workflow/spec.h"

namespace warpsmith::workflow {

struct SweepRequest {
  std::string name;               // of the workflow
  std::filesystem::path run;      // whose kernels; relative to the folder that the file will lie in
  std::vector<std::string> gpus;  // GPU types, also cpu
  std::string select = "best";    // or "all"
};

// What `workflows/portability.yaml` is for another run: its text. Dataset, protocol, limits of compilations
// and resources of compile and measure jobs are those of `like`, a stage of that run's workflow.
std::string sweep_yaml(const SweepRequest& request, const StageSpec& like);

// The stage of a workflow that a sweep is like: the first that measures. Null where the workflow has no
// stages.
const StageSpec* measuring_stage(const WorkflowSpec& spec);

}  // namespace warpsmith::workflow

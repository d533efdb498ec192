// Which device a stage is measured on at a place: what its `device` asks for, against what a site has.
#pragma once

#include <string_view>
#include <vector>

#include "warpsmith/workflow/site.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::workflow {

std::string_view to_string(DeviceFound found);  // "real", "twin", "none"; "" for kUnasked

// Whether the stage samples nothing, and only measures candidates that are there.
bool measures_again(const StageSpec& stage);

// The jobs that a stage may ask for, by their keys in `resources`.
struct StageJob {
  std::string_view name;
  const Resources* resources;
};
std::vector<StageJob> stage_jobs(const StageSpec& stage);

// Sets wanted_device, device_found and `lacks` of every stage whose `device` is not cpu, and `blocked` of
// those that cannot run there. `site` null: this machine, none of whose GPUs can be used yet.
//
//   real  the site has the type
//   twin  the site says that the type's nodes have none: `device` becomes cpu, and the resources of the
//   measure
//         jobs keep gpus and gpu_type, so that they go to these nodes all the same
//   none  the site lacks the type
//
// Where nothing can be measured, a stage that measures_again() answers so for each candidate; others are
// blocked, but for `command`: what its program does with a device is its own affair. Blocked as well is who
// asks for several ranks, for GPUs that the place does not have, or for `teachers`.
void resolve_devices(WorkflowSpec& spec, const SiteSpec* site);

}  // namespace warpsmith::workflow

// Which device a stage is measured on at a place: what its `device` asks for, against what a site, or this
// machine, has.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/workflow/site.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::workflow {

// GPUs of one type on this machine that its jobs may have.
struct GpuStock {
  std::size_t count = 0;
  std::string target;              // what they are compiled for, such as "sm_90a"; empty: not known
  std::vector<std::string> names;  // what the driver calls them
};
using GpuStocks = std::map<std::string, GpuStock>;  // by type

std::string_view to_string(DeviceFound found);  // "real", "twin", "none"; "" for kUnasked

// Whether the stage samples nothing, and only measures candidates that are there.
bool measures_again(const StageSpec& stage);

// Whether it measures programs that its `prompt: {answer}` makes such as need a GPU.
bool runs_on_gpus_alone(const StageSpec& stage);

// The jobs that a stage may ask for, by their keys in `resources`.
struct StageJob {
  std::string_view name;
  const Resources* resources;
};
std::vector<StageJob> stage_jobs(const StageSpec& stage);
// Of its job of that name; null where it has none.
const Resources* resources_of_job(const StageSpec& stage, std::string_view name);

// Whether anything of the workflow depends on the GPUs of the place: a `device` other than cpu, or `gpus`.
bool asks_for_gpus(const WorkflowSpec& spec);

// Sets the workflow's `prices`, and wanted_device, device_found and `lacks` of every stage whose `device` is
// not cpu, and `blocked` of those that cannot run there. `site` null: this machine, which has `machine`.
//
//   real  the place has the type
//   twin  the site says that the type's nodes have none: `device` becomes cpu, and the resources of the
//   measure
//         jobs keep gpus and gpu_type, so that they go to these nodes all the same
//   none  the place lacks the type
//
// `auto` becomes one of the place's types first, and says why in auto_device: of this machine's the one with
// most GPUs, of a site's the only one that is no twin; where there are several the stage is blocked, as
// somebody has to choose. Where there is none it becomes cpu, as if the file said so.
//
// Measure jobs on a GPU ask for one of its type, and for at least 12 GiB where their memory is limited; other
// jobs for those that the file says, of the stage's type where it says none.
//
// Where nothing can be measured, a stage that measures_again() answers so for each candidate; others are
// blocked, but for `command`: what its program does with a device is its own affair. Blocked as well is who
// asks for several ranks, for GPUs that the place does not have, or for a budget of money where the site has
// no price.
void resolve_devices(WorkflowSpec& spec, const SiteSpec* site, const GpuStocks& machine = {});

}  // namespace warpsmith::workflow

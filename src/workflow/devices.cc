#include "warpsmith/workflow/devices.h"

#include <fmt/format.h>

namespace warpsmith::workflow {

namespace {

void resolve(StageSpec& stage, const SiteSpec* site) {
  stage.wanted_device = stage.device;
  const SitePlace* place =
      site == nullptr ? nullptr : place_for(*site, {.gpus = 1, .gpu_type = stage.device});
  if (place == nullptr) {
    stage.device_found = DeviceFound::kNone;
    stage.lacks = fmt::format("no device: {} has no {}",
                              site == nullptr ? "this machine" : "site " + site->name, stage.device);
  } else if (place->twin) {
    stage.device_found = DeviceFound::kTwin;
    stage.device = "cpu";
    if (stage.protocol.baseline != "eager")
      stage.lacks = fmt::format("the CPU twin has no baseline `{}`", stage.protocol.baseline);
  } else {
    stage.device_found = DeviceFound::kReal;
  }
  if (stage.lacks.empty() || measures_again(stage) || stage.kind == "command") return;
  stage.blocked = stage.lacks;
  if (site == nullptr) stage.blocked += "; `--site` names a cluster that has one";
}

std::string problem_of(const StageJob& job, const SiteSpec* site) {
  const Resources& r = *job.resources;
  if (r.ranks > 1 || r.nodes > 1)
    return fmt::format("its {} jobs ask for {} ranks on {} nodes: shards of several ranks are not built yet",
                       job.name, r.ranks, r.nodes);
  if (r.gpus == 0) return "";
  if (site == nullptr)
    return fmt::format(
        "its {} jobs ask for GPUs, which jobs on this machine do not get yet; `--site` names a cluster that "
        "has them",
        job.name);
  if (site->gpus.empty() || (!r.gpu_type.empty() && place_for(*site, r) == nullptr))
    return fmt::format("its {} jobs ask for a GPU{}, and site {} has none", job.name,
                       r.gpu_type.empty() ? "" : " of type " + r.gpu_type, site->name);
  return "";
}

}  // namespace

std::vector<StageJob> stage_jobs(const StageSpec& stage) {
  const StageJob generate{"generate", &stage.generate}, compile{"compile", &stage.compile},
      measure{"measure", &stage.measure}, train{"train", &stage.train};
  if (stage.kind == "collect") return {compile, measure};
  if (stage.kind == "measure" && measures_again(stage)) return {compile, measure};
  if (stage.kind == "measure") return {generate, compile, measure};
  if (stage.kind == "sft" || stage.kind == "command") return {train};
  return {generate, compile, measure, train};
}

std::string_view to_string(DeviceFound found) {
  switch (found) {
    case DeviceFound::kUnasked:
      return "";
    case DeviceFound::kReal:
      return "real";
    case DeviceFound::kTwin:
      return "twin";
    case DeviceFound::kNone:
      return "none";
  }
  return "";
}

bool measures_again(const StageSpec& stage) {
  const auto* measure = std::get_if<MeasureSettings>(&stage.settings);
  return measure != nullptr && measure->checkpoint_of.empty();
}

void resolve_devices(WorkflowSpec& spec, const SiteSpec* site) {
  for (StageSpec& stage : spec.stages) {
    if (stage.device_found == DeviceFound::kUnasked && stage.device != "cpu") resolve(stage, site);
    const auto* collect = std::get_if<CollectSettings>(&stage.settings);
    if (collect != nullptr && !collect->teachers.empty())
      stage.blocked = "candidates from `teachers` are not built yet; leave it out";
    if (!stage.lacks.empty()) continue;  // nothing of it is started
    for (const StageJob& job : stage_jobs(stage))
      if (stage.blocked.empty()) stage.blocked = problem_of(job, site);
  }
}

}  // namespace warpsmith::workflow

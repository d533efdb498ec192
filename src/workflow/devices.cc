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

}  // namespace

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
  for (StageSpec& stage : spec.stages)
    if (stage.device_found == DeviceFound::kUnasked && stage.device != "cpu") resolve(stage, site);
}

}  // namespace warpsmith::workflow

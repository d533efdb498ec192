#include "warpsmith/controller/device_doubts.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpsmith/base/paths.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/records/gpu_doubts.h"

namespace warpsmith::controller {

namespace {

std::vector<Ceilings> ceilings_of(const fs::path& run) {
  std::vector<Ceilings> found;
  try {
    for (const fs::path& file : folder_entries(run / "cache/ceilings"))
      if (file.extension() == ".json")
        if (std::optional<Ceilings> one = read_ceilings(file)) found.push_back(std::move(*one));
  } catch (const Error&) {  // a folder that may not be read
  }
  return found;
}

}  // namespace

std::vector<Ceilings> ceilings_of_runs(const fs::path& results) {
  std::vector<Ceilings> all;
  try {
    for (const fs::path& run : folder_entries(results))
      for (Ceilings& one : ceilings_of(run)) all.push_back(std::move(one));
  } catch (const Error&) {
  }
  return all;
}

std::vector<DeviceDoubt> device_doubts(const fs::path& run) {
  std::vector<DeviceDoubt> doubts;
  const std::vector<Ceilings> here = ceilings_of(run);
  if (here.empty()) return doubts;
  const std::vector<Ceilings> all = ceilings_of_runs(fs::absolute(run).lexically_normal().parent_path());
  for (const Ceilings& gpu : here) {
    if (gpu.kind.empty()) continue;
    std::vector<Ceilings> others;
    for (const Ceilings& other : all)
      if (other.kind == gpu.kind && (other.uuid != gpu.uuid || other.date != gpu.date))
        others.push_back(other);
    const std::string type = process::known_gpu_type(gpu.kind);
    std::vector<std::string> why = gpu_doubts(gpu, type.empty() ? gpu.kind : type, others);
    if (!why.empty()) doubts.push_back({gpu.kind, gpu.name, gpu.uuid, gpu.host, std::move(why)});
  }
  return doubts;
}

std::string to_string(const DeviceDoubt& doubt) {
  return fmt::format("{} on {} ({}, {}) is doubted: {}", doubt.kind, doubt.host, doubt.name, doubt.uuid,
                     fmt::join(doubt.why, "; "));
}

Json to_json(const std::vector<DeviceDoubt>& doubts) {
  Json list = Json::array();
  for (const DeviceDoubt& one : doubts)
    list.push_back({{"kind", one.kind},
                    {"name", one.name},
                    {"uuid", one.uuid},
                    {"host", one.host},
                    {"why", one.why},
                    {"text", to_string(one)}});
  return list;
}

void note_doubts(const fs::path& run, store::Results& results) {
  for (const DeviceDoubt& doubt : device_doubts(run))
    for (DeviceFacts& device : results.devices)
      if (device.uuid == doubt.uuid && device.kind == doubt.kind)
        device.extra["doubts"] = fmt::format("{}", fmt::join(doubt.why, "; "));
}

}  // namespace warpsmith::controller

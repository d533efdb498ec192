// GPUs of a run that are hardly what their kind says, by what its shards and those of other runs have probed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/records/ceilings.h"
#include "warpsmith/store/results.h"

namespace warpsmith::controller {

// <results>/*/cache/ceilings/*.json, in the order of the paths; what cannot be read is not there.
std::vector<Ceilings> ceilings_of_runs(const std::filesystem::path& results);

struct DeviceDoubt {
  std::string kind, name, uuid, host;  // of the GPU; kind: what the run took it for
  std::vector<std::string> why;        // gpu_doubts() in records/gpu_doubts.h; never empty
};
// Of the GPUs that the run has probed, against the others of the same kind in its results folder.
std::vector<DeviceDoubt> device_doubts(const std::filesystem::path& run);

// "H100 on node7 (GPU-1, NVIDIA H100) is doubted: it has 114 SMs, …; …"
std::string to_string(const DeviceDoubt& doubt);
Json to_json(const std::vector<DeviceDoubt>& doubts);

// Puts them among the facts of the devices, as `doubts`: for the report.
void note_doubts(const std::filesystem::path& run, store::Results& results);

}  // namespace warpsmith::controller

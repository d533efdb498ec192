// The work of warpsmith-probe: what the GPU of this process can do at most.
#pragma once

#include <filesystem>

#include "warpsmith/records/ceilings.h"

namespace warpsmith::measure {

struct ProbeOptions {
  std::filesystem::path cache;  // of compiled kernels; empty: a folder that is removed afterwards
  bool thorough = true;         // false: as warpsmith-measure does it, in 1 to 3 s
  bool unsandboxed = false;     // for the compiler of the kernels
};

// Waits for the GPU's timing lock, and holds it meanwhile. Throws Error, saying what is missing, where there
// is no driver, no GPU, no CUDA in torch, or no NVRTC. Once a process.
Ceilings probe_this_gpu(const ProbeOptions& options);

}  // namespace warpsmith::measure

// Whether this GPU is the one that was asked for, and whether it does as it should.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "warpsmith/measure/measurer.h"
#include "warpsmith/process/gpu_watch.h"

namespace warpsmith::measure {

// Why a GPU is refused where WARPSMITH_HAS_GPU is not defined.
inline constexpr const char* kBuiltWithoutGpu =
    "this warpsmith-measure was built without CUDA's headers and NVRTC, and measures on the CPU only";

// Throws Error (kExitWrongDevice) where a GPU of this name is none that the settings ask for.
void require_gpu(const Settings& settings, const std::string& name);

// Whether a message says that a GPU's memory was too small: CUDA's words, torch's, and ours.
bool lacks_gpu_memory(const std::string& message);

// PairSettings::disturbed of a GPU: whether heat or a power brake slows it down now. Never where there is no
// watch; it must outlive the rounds, and so must `seen`, where all that keeps the clocks down is noted.
std::function<bool()> slowed_down(const std::optional<process::GpuWatch>& watch,
                                  std::optional<std::uint64_t>* seen = nullptr);

}  // namespace warpsmith::measure

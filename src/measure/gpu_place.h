// Which GPU this is, and that nobody else times on it.
#pragma once

#include <filesystem>
#include <string>

#include "warpsmith/measure/measurer.h"

namespace warpsmith::measure {

// Throws Error (kExitWrongDevice) where a GPU of this name is none that the settings ask for.
void require_gpu(const Settings& settings, const std::string& name);

// To be taken as base's FileLock while something is timed on the GPU.
std::filesystem::path gpu_lock_path(const std::string& uuid);

}  // namespace warpsmith::measure

// Whether this GPU is the one that was asked for.
#pragma once

#include <string>

#include "warpsmith/measure/measurer.h"

namespace warpsmith::measure {

// Throws Error (kExitWrongDevice) where a GPU of this name is none that the settings ask for.
void require_gpu(const Settings& settings, const std::string& name);

}  // namespace warpsmith::measure

// What an answer of the driver says of the candidate that ran last.
#pragma once

#include <cuda.h>

#include "warpsmith/device/gpu.h"

namespace warpsmith::device {

GpuOutcome outcome_of(CUresult result);

}  // namespace warpsmith::device

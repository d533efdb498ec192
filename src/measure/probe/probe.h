// What a GPU can do at most: bandwidth of its memory, rates of matrix products, latency of launches.
//
// Bandwidths are of buffers many times the size of L2, by a kernel of ours with several numbers of blocks,
// copies by the driver's own copy as well; rates are those of torch's matmul of normally distributed matrices
// (zeros would draw less power and run faster). Of all that is tried, that with the best median counts. All
// is timed as candidates are: between two events on a stream that is held back meanwhile.
#pragma once

#include <string>

#include "gpu/harness.h"
#include "warpsmith/process/gpu_watch.h"
#include "warpsmith/records/ceilings.h"

namespace warpsmith::measure {

// The GPU is to be this process's alone. `thorough`: more sizes and repeats, some 10 s; else 1 to 3 s, most
// of which is starting cuBLAS. `watch` may be null. Throws Error where the GPU has not an eighth of its
// memory to spare, or where something fails on it.
Ceilings probe_gpu(GpuHarness& harness, const process::GpuWatch* watch, bool thorough);
// Of it the bandwidth of reading alone, in some milliseconds.
CeilingFigure probe_reading(GpuHarness& harness);

// As records keep it.
GpuState state_of(const process::GpuReading& reading);

}  // namespace warpsmith::measure

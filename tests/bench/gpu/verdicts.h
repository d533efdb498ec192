// The dataset's candidates once, often or many of them: false where a verdict is not what it should be.
#pragma once

#include <cstddef>

#include "dataset.h"
#include "warpsmith/measure/gpu.h"
#include "warpsmith/measure/gpu_workers.h"

namespace warpsmith::gpu_bench {

bool all(Bench& bench, measure::GpuWorkers& workers);
bool few_rounds(Bench& bench, measure::GpuMeasurer& measurer);
bool repeat_checks(Bench& bench, measure::GpuMeasurer& measurer);
// Half of them loop, half crash; to be compiled with the others.
void add_bad_ones(Bench& bench, std::size_t count);
std::size_t throughput_candidates();  // good and bad ones
bool throughput(Bench& bench, measure::GpuWorkers& workers);

}  // namespace warpsmith::gpu_bench

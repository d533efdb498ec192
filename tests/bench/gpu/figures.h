// What a number of a GPU is worth: figures that are printed, and not judged.
#pragma once

#include "dataset.h"
#include "warpsmith/measure/gpu.h"
#include "warpsmith/measure/gpu_baselines.h"
#include "warpsmith/measure/gpu_workers.h"

namespace warpsmith::gpu_bench {

void null_test(Bench& bench, measure::GpuMeasurer& measurer);
void null_python(Bench& bench, measure::GpuMeasurer& measurer);
void spread(Bench& bench, measure::GpuWorkers& workers);
void python_eager(const Bench& bench, measure::GpuBaselines& baselines);
void time_baselines(const Bench& bench, measure::GpuBaselines& baselines);

}  // namespace warpsmith::gpu_bench

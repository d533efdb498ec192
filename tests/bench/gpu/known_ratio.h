// Work done twice: a score whose right value is known.
#pragma once

#include <filesystem>

#include "dataset.h"
#include "warpsmith/measure/gpu.h"

namespace warpsmith::gpu_bench {

// Writes the tasks below `folder`, each a task file for open_bench(): a product by a constant, so many times
// one after the other, each a launch. They take 10 us to 5 ms, of one launch's worth of work or of operands
// that do not fit into L2.
void write_known_ratio_tasks(const std::filesystem::path& folder);

// In each tier a program that does the reference's work once in a call, launch by launch, and one that does
// it twice. Prints both scores and what one is of the other, which must be 0.50; in tier `python`, where the
// program is the reference, once must be 1.00. Compiles the programs itself.
void known_ratio(Bench& bench, measure::GpuMeasurer& measurer);

}  // namespace warpsmith::gpu_bench

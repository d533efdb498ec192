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

// To `bench.entries`: for each task and tier but `python`, a program that does the reference's work once in a
// call, launch by launch, and one that does it twice.
void add_known_ratio_programs(Bench& bench);

// Measures them, and in tier `python` the reference. Prints both scores and what one is of the other, which
// must be 0.50; in tier `python`, where the program is the reference, once must be 1.00.
void known_ratio(const Bench& bench, measure::GpuMeasurer& measurer);

}  // namespace warpsmith::gpu_bench

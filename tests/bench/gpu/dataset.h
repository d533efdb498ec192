// The dataset's candidates, compiled for the GPU that is measured, and how a measurement is printed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/measure/measurer.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::gpu_bench {

double now();  // seconds

struct Entry {
  const task::Task* task = nullptr;
  std::string name, expected;
  Candidate candidate;
  toolchain::CompileResult compiled;
};

struct Bench {
  std::filesystem::path datasets, cache;
  std::vector<task::Task> tasks;
  std::vector<Entry> entries;
  std::string target;
  measure::Settings settings;
};

// Settings are those of a run with a target of ±0.5 %. Throws InvalidInput. WARPSMITH_BENCH_TARGET: another
// architecture than sm_90a. `shapes`: "cpu" or "gpu", whose timing shapes the tasks have.
Bench open_bench(const std::filesystem::path& datasets, const std::string& shapes);
// On all cores; its threads are gone before anything forks.
void compile(Bench& bench);

// Prints those that do not compile, and are not to end so by their folder, and counts them.
int surprises_of_compiler(const Bench& bench);

std::string number_of(const std::optional<double>& value, int digits);
std::string line_of(const Measurement& m);
void print_gpu(const Measurement& m);       // once
std::string wanted_of(const Entry& entry);  // the verdict that it must get
std::vector<const Entry*> good_ones(const Bench& bench);
std::vector<std::string> ids_of(const Bench& bench);  // of the tasks

}  // namespace warpsmith::gpu_bench

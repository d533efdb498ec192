// Baselines on the GPU (baselines.h says what they are for): each in a process of its own, which may be lost
// without harm.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "warpsmith/measure/measurer.h"
#include "warpsmith/records/baseline.h"

namespace warpsmith::measure {

// A call of eager alone, as this program and as Python times it. What launches take the GPU seems to be a
// process's own for its life: two processes of the same program were up to 6 % apart for small kernels, all
// tasks alike. Within one process `torchscript` against eager, as measure() has it, is 1.
struct EagerTimes {
  std::string task;
  double ours_ns = 0, python_ns = 0;
  int calls = 1;        // in each timed interval of both
  std::string problem;  // where one of them is missing
};

// Forks: to be made, and used, while this process has no threads and has not touched the GPU. Not
// thread-safe.
class GpuBaselines {
 public:
  struct Options {
    Settings settings;
    std::filesystem::path datasets;  // folder of the tasks
    std::vector<std::byte> harness;  // of harness_cubin.h
    std::filesystem::path cache;     // rows that have a number are kept here, and torch's own caches
    std::function<void(const BaselineTiming&)> take = {};  // gets each row as soon as it is there
  };
  // Throws Error where torch has no CUDA.
  explicit GpuBaselines(Options options);
  ~GpuBaselines();

  // A row for each task and each name (known_baselines(), or `torchscript`, which PythonBaselines has), task
  // by task. What cannot be had is a row that says why. Throws Error where the GPU is of the wrong type,
  // InvalidInput where a task is.
  std::vector<BaselineTiming> measure(const std::vector<std::string>& tasks,
                                      const std::vector<std::string>& names);

  std::vector<EagerTimes> eager_times(const std::vector<std::string>& tasks);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::measure

// Measures on the GPU in processes that may be lost: a candidate that takes the GPU's context with it costs
// its own verdict, and the next one is measured by a fresh process. One process checks candidates of tier
// `plan`; another times those that are right, and a third where that is to be done again.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "warpsmith/measure/measurer.h"

namespace warpsmith::measure {

// Forks: to be made, and used, while this process has no threads and has not touched the GPU. Not
// thread-safe.
class GpuWorkers {
 public:
  // `datasets`: folder of the tasks; `harness`: of harness_cubin.h. Throws Error where torch has no
  // CUDA.
  GpuWorkers(Settings settings, std::filesystem::path datasets, std::vector<std::byte> harness);
  ~GpuWorkers();
  // As GpuMeasurer::measure(), and again in another process where that asks for it. Throws Error where the
  // machine is at fault (no GPU, the wrong type).
  Measured measure(const Candidate& candidate, const std::filesystem::path& binary);
  // Once. `attempt` as of GpuMeasurer::measure(): to see how repeats scatter.
  Measured measure_once(const Candidate& candidate, const std::filesystem::path& binary, int attempt);
  // The next measurement is by fresh processes.
  void refresh();
  int lost() const;  // processes that a candidate has taken along

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::measure

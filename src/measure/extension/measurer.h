// Measures candidates of tiers `extension` and `python`: correct first, then timed in pairs with the
// baseline, both by this process's clock, and looked at for what host code can do that a plan cannot.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "gpu/bench.h"
#include "gpu/harness.h"
#include "warpsmith/measure/measurer.h"

namespace warpsmith::measure {

// Of one candidate, each in a process of its own: what is doubtful is timed anew, and once more what was
// found beside the clock. A candidate's calls a row are estimated anew so often, before it is `unstable`.
inline constexpr int kMostTimings = 3, kMostEstimates = 3;
// Pairs of sides that a measurement times at most, a score's repetition included.
inline constexpr int kMostPairs = 2 * (kMostTimings + 1) * kMostEstimates;

// Folders with the cuBLAS and cuDNN that the baseline uses: those of this process.
std::vector<std::filesystem::path> library_folders();

class ExtensionMeasurer {
 public:
  // For where host code is not refused (refused.h). `settings.best` is written to.
  ExtensionMeasurer(GpuHarness& harness, Settings& settings, EngineDevice& device);
  ~ExtensionMeasurer();
  // Has a Python module compile what it compiles when it first runs, at every shape that it will be asked
  // for: before anybody holds the GPU's lock. What that leaves is there for measure(), which is next, and
  // goes with it. Not ok: it fails. Of other candidates it does nothing.
  Ran compile_at_first_run(const task::Task& task, const Candidate& candidate,
                           const std::filesystem::path& binary);
  // Starts the processes that measure() will want for a Python module, its baseline's as well where
  // `with_baseline`. Comes back when they have loaded torch, and wait. Nothing touches the GPU. Throws Error.
  void start_processes(const task::Task& task, const std::filesystem::path& binary, bool with_baseline);
  // The same for measure_reference().
  void start_reference(const task::Task& task, int times, bool with_baseline);
  // Has these processes open contexts on the GPU while the caller does something else. Waits for nothing.
  void open_contexts();
  // A null test: the task's reference through the whole path of a candidate of tier `python`. `times`: how
  // often a call does its work; the score should be one over that.
  void measure_reference(GpuBench& task, int times, Measured& out);
  // Fills in the rest of a measurement that says nothing yet. Throws Error where no child can be started.
  void measure(GpuBench& task, const Candidate& candidate, const std::filesystem::path& binary,
               Measured& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::measure

// Baselines that only Python has: torch.compile in its two modes, each timed in pairs with Python's eager in
// one python3.
//
// Both arms live in that process (src/python/baselines.py); rounds, their order, when to stop and the score
// are ours (pairs.h), as for any other pair. Each call's operands, parameters too, are inputs of the compiled
// function: `reduce-overhead` copies them into its CUDA graph's own memory, and that is timed.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "warpsmith/measure/measurer.h"
#include "warpsmith/records/baseline.h"

namespace warpsmith::measure {

// One for each baseline: its process is this baseline's alone. Not thread-safe. Starts children: to be used
// while this process has no threads and has not touched the GPU.
class PythonBaselines {
 public:
  // `device`: "cuda", or "cpu" (tests). `folder` holds the script, its log and torch's caches.
  PythonBaselines(Settings settings, std::string device, std::filesystem::path folder);
  ~PythonBaselines();

  // `name`: torch_compile, torch_compile_reduce_overhead, eager (against itself), or torchscript (the
  // reference as this program runs it, against Python's). What fails is a row `missing` with its reason.
  // Throws Error only where the GPU is of the wrong type.
  BaselineTiming measure(const task::Task& task, const std::string& name);

  // Nanoseconds a call of Python's eager alone, `rounds` intervals of `calls` calls. Throws Error where it
  // cannot be had.
  std::vector<double> eager_alone(const task::Task& task, int calls, int rounds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::measure

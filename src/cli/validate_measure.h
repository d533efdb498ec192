// `warpsmith validate FOLDER --measure [--device D]`: every candidate of a dataset compiled and measured on
// the CPU or a GPU of this machine, and its verdict held against the folder that it lies in; those of tiers
// `extension` and `python` on GPUs alone. The job programs beside this one do the work, in a run folder of
// their own that is removed afterwards.
#pragma once

#include <string>
#include <vector>

#include "measure_here.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/task/task.h"

namespace warpsmith::cli {

struct MeasuredCandidate {
  std::string name, expected;  // as the dataset says
  Tier tier = Tier::kPlan;
  Measurement measurement;     // for one that does not compile: its verdict and the compiler's log as detail
  bool at_gpu_shapes = false;  // timed at others than those of a CPU
  // wrong_hidden: wrong_output, and only at a hidden shape. Which shapes are hidden ones is said of a CPU:
  // at_gpu_shapes it may be wrong at any. unsupported: the twin lacks what it needs; a GPU may have it, and
  // there it may be ok.
  bool as_expected() const;
};

struct MeasuredTask {
  task::Task task;
  std::vector<MeasuredCandidate> candidates;
  // Over those that are `ok`:
  int correct() const;
  double best() const;           // speedup; 0 without one
  double log_deviation() const;  // standard deviation of the log-speedup
};

// Compiles and measures all candidates of `tasks`. One that is expected to be `ok` and comes out as
// `unstable` is measured once more: the host was busy. Throws InvalidInput for mistakes in candidate files,
// Error where there is no such device, a program fails (with its log), or a signal asks for the end
// (kExitInterrupted).
std::vector<MeasuredTask> measure_tasks(const std::vector<task::Task>& tasks, const MeasureOptions& options);

// A table for people, and the same as JSON.
std::string measured_text(const std::vector<MeasuredTask>& tasks);
Json measured_json(const std::vector<MeasuredTask>& tasks);
int verdicts_that_differ(const std::vector<MeasuredTask>& tasks);

}  // namespace warpsmith::cli

// `warpsmith validate FOLDER --measure`: every candidate of a dataset compiled and measured, and its verdict
// held against the folder that it lies in. The job programs beside this one do the work, in a run folder of
// their own that is removed afterwards.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/records/measurement.h"
#include "warpsmith/task/task.h"

namespace warpsmith::cli {

struct ValidateMeasureOptions {
  int threads = 1;      // of candidate and baseline
  double budget_s = 2;  // timing of one candidate
  bool timing = true;   // false: verdicts only
  bool unsandboxed = false;
  bool keep = false;  // leave the run folder, and say where it is
};

struct MeasuredCandidate {
  std::string name, expected;  // as the dataset says
  Measurement measurement;     // for one that does not compile: its verdict and the compiler's log as detail
  bool as_expected() const;    // wrong_hidden: wrong_output, and only at a hidden shape
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
// Error where a program fails (with its log).
std::vector<MeasuredTask> measure_tasks(const std::vector<task::Task>& tasks,
                                        const ValidateMeasureOptions& options);

// A table for people, and the same as JSON.
std::string measured_text(const std::vector<MeasuredTask>& tasks);
Json measured_json(const std::vector<MeasuredTask>& tasks);
int verdicts_that_differ(const std::vector<MeasuredTask>& tasks);

}  // namespace warpsmith::cli

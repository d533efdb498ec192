// Compiles and measures candidates on the CPU or a GPU of this machine, without a workflow: what `validate
// --measure` and `bench` do. The job programs beside this one do the work, in a run folder of their own.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/records/baseline.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"

namespace warpsmith::cli {

struct MeasureOptions {
  std::string device = "cpu";  // "cpu", "auto" (a GPU where there is one), or a GPU type
  int threads = 1;             // of candidate and baseline
  double budget_s = 2;         // timing of one candidate
  bool timing = true;          // false: verdicts only
  double variance_gate = 0;    // as in a workflow; 0: of the device
  bool unsandboxed = false;
  bool keep = false;                   // leave the run folder, and say where it is
  std::vector<std::string> baselines;  // timed beside `eager`, on a GPU
};

// What is measured on, as the job programs are told it.
struct DeviceHere {
  std::string kind = "cpu";  // or a GPU type
  std::string target;        // of a GPU: what is compiled for
  std::string name, uuid;    // of a GPU
  bool is_gpu() const { return kind != "cpu"; }
};
// Throws Error where there is no such device here.
DeviceHere find_device(const std::string& wanted);
// Throws Error with kExitUsage where `device` can name none.
void check_device(const std::string& device);

// A candidate, and what became of it.
struct MeasuredHere {
  Candidate candidate;
  Json compiled, measured;                // records; null until there is one
  std::vector<BaselineTiming> baselines;  // of its task, at the first of its candidates
  // For one that does not compile: its verdict, and the compiler's log as detail.
  Measurement measurement() const;
};

// Compiles all and measures those that compile, in a run folder that is removed afterwards; candidates of one
// task together. Equal programs are measured once. `datasets`: the folder of their tasks. One that `again`
// names is measured once more where it comes out as `unstable`: the machine was busy. Throws Error where a
// program fails (with its log), or a signal asks for the end (kExitInterrupted).
void measure_here(const std::filesystem::path& datasets, const DeviceHere& device,
                  const MeasureOptions& options, std::vector<MeasuredHere>& all,
                  const std::function<bool(std::size_t)>& again);

}  // namespace warpsmith::cli

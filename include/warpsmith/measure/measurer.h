// Measures candidates on the CPU: correct first, then timed in pairs with the baseline, by the protocol of
// results/measurement.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/stats/score.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

// On a GPU: of candidates that are surely slower than this, little more need be known.
inline constexpr double kGiveUpBelow = 0.8;
// Half width of the interval, where nothing is said.
inline constexpr double kTargetOnGpu = 0.005, kTargetOnCpu = 0.01;
// Of the target, for so many rounds: rounds on a GPU take one to three milliseconds.
inline constexpr double kStopAtOnGpu = 0.65;
inline constexpr int kFineRoundsOnGpu = 200;

// Params of a `measure` job.
struct Settings {
  std::string device_kind = "cpu";  // or a GPU type, such as "H100"
  std::vector<std::string>
      device_names;                    // of a GPU: its name must hold one of these words; empty: any will do
  std::string baseline = "eager";      // of the score; the measurers time against eager, and the job divides
  std::vector<std::string> baselines;  // that are timed for each task (baselines.h); on the CPU none
  std::string math = "strict";
  int threads = 1;
  stats::Protocol protocol;
  double budget_s = 2;
  int check_seeds = 2;
  double call_timeout_s = 10;
  std::uint64_t memory_bytes = 2ull << 30;
  double remeasure_above = 3;
  double remeasure_over_best = 2;
  std::map<std::string, double> best;  // best speedup known by task
  bool unsandboxed = false;
  bool timing = true;  // false: verdicts of the checks alone, `ok` without a score
  std::uint64_t seed = 0;
  // Not a param: time the shapes of the CPU (`timing: {cpu: ...}`) on a GPU, too.
  bool shapes_of_cpu = false;
  // Not a param: folder where GPUs' ceilings are kept (records/ceilings.h). Where a GPU's are missing they
  // are measured and put there; empty: each process measures them for itself.
  std::filesystem::path ceilings;
  // Not a param: folder for the parameters of tasks that are modules (module_state.h); empty: each process
  // has one of its own.
  std::filesystem::path module_states;
  // Not a param: other shards measure on this GPU, too, and have some of its memory.
  bool shares_gpu = false;
  // Not a param: what the score's baseline gains over eager, by task; missing: 1. The measurers' speedups are
  // over eager, and `remeasure_above` is not.
  std::map<std::string, double> baseline_ratio;
  double ratio_of(const std::string& task) const {
    const auto found = baseline_ratio.find(task);
    return found == baseline_ratio.end() ? 1 : found->second;
  }
};
// Throws Error with kExitUsage naming the parameter that is missing or makes no sense.
Settings settings_from_json(const Json& params, std::uint64_t seed);

struct Measured {
  Measurement measurement;            // without its blob
  std::vector<std::int64_t> samples;  // nanoseconds a call: all baseline, then all candidate
  // On a GPU, tier `plan`: why this is to be measured once more, in another process; empty: it is not.
  std::string again;
};
inline constexpr const char* kAgainForBaseline = "baseline";  // it does not agree with its time alone
inline constexpr const char* kAgainForScore = "score";        // it looks too good

// One a process: it sets torch up. What a task needs (reference, right answers, the baseline's time alone) is
// made at its first candidate and kept until a candidate of another task comes: hand candidates in grouped by
// task. Not thread-safe.
class Measurer {
 public:
  // Throws Error where no sandbox is to be had and `unsandboxed` was not asked for.
  explicit Measurer(Settings settings);
  ~Measurer();

  // `binary`: the shared object that the host toolchain made of the candidate. What is wrong with the
  // candidate is its verdict; throws InvalidInput where the task's reference is wrong, other Errors where
  // this machine is at fault.
  Measured measure(const task::Task& task, const Candidate& candidate, const std::filesystem::path& binary);

  // Null tests: the reference against itself, and a candidate against itself in two children. Scores near 1
  // are expected.
  Measured measure_reference_against_itself(const task::Task& task);
  Measured measure_candidate_against_itself(const task::Task& task, const Candidate& candidate,
                                            const std::filesystem::path& binary);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::measure

// What was measured of one candidate, and on what.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/records/field.h"
#include "warpsmith/records/verdict.h"

namespace warpsmith {

// Facts of the device, taken with every measurement. For `cpu` the CPU's model; GPU fields stay empty.
struct DeviceFacts {
  std::string kind;    // "cpu", or a GPU type such as "H100"
  std::string name;    // CPU model or GPU name as the driver says
  std::string uuid;    // GPU only
  std::string driver;  // GPU only
  std::string host;
  int threads = 0;                         // CPU threads that candidate and baseline used
  int cores = 0;                           // CPU cores of the host
  double load_before = 0, load_after = 0;  // 1-minute load average
  std::string sandbox;                     // level: "bubblewrap", "landlock", "none"
  std::map<std::string, std::string> extra;
};
const Fields<DeviceFacts>& device_fields();
inline const Fields<DeviceFacts>& fields_of(const DeviceFacts&) { return device_fields(); }
Json to_json(const DeviceFacts& facts);
DeviceFacts device_facts_from_json(const Json& json);  // throws Error

// How a GPU did at a moment. What its driver does not tell is nothing.
struct GpuState {
  std::optional<int> sm_clock_mhz, memory_clock_mhz, temperature_c;
  std::optional<double> power_w;
  std::string clock_reasons;  // what kept the clocks down: "sw_power_cap gpu_idle", "none"; empty: not told
};
const Fields<GpuState>& fields_of(const GpuState& state);
Json to_json(const GpuState& state);
GpuState gpu_state_from_json(const Json& json);

// What compilers and machine code say of a candidate's own kernels together. Kernels of libraries are not
// seen, nor what is compiled when it first runs. Nothing: not known.
struct CodeFacts {
  std::optional<bool> tensor_cores;          // the machine code has matrix instructions
  std::optional<std::int64_t> registers;     // of a thread; this and what follows of the kernel with most
  std::optional<std::int64_t> shared_bytes;  // static, of a block
  std::optional<std::int64_t> spill_bytes;   // that a thread stores and loads for want of registers
};
const Fields<CodeFacts>& code_fields();
Json to_json(const CodeFacts& facts);
CodeFacts code_facts_from_json(const Json& json);  // throws Error

// One timing shape's paired samples. Raw samples lie in the shard's binary file. To add a field, add a member
// here (or in CodeFacts), its line in src/records/measurement_fields.cc, and the place that computes it.
struct Measurement : CodeFacts {
  std::string candidate;  // id
  std::string task;
  std::string baseline;  // "eager", …
  std::string math;      // "strict" or "torch_default"
  Verdict verdict = Verdict::kNotMeasured;
  std::string
      detail;  // human: what was wrong and where ("out[3,5]: 1.25 where 1.5 was expected (shape M=3 N=33)")
  std::string hack;          // kind, where verdict is kHack
  bool only_hidden = false;  // it fails at a hidden shape, and is right at the timing shapes
  // Set where verdict is ok, unstable or too_fast; and with `only_hidden` where the task is a module: see
  // is_one_shape().
  double speedup = 0;  // score: median of bucket means of log(baseline/candidate), exponentiated; unrounded
  double speedup_rounded = 0;                // two decimals toward 1.00: the reward
  double speedup_low = 0, speedup_high = 0;  // 95 % interval
  bool imprecise = false;                    // the time budget ended before the interval was narrow enough
  double baseline_ns = 0, candidate_ns = 0;  // medians a call
  // Where the baseline is not eager: the time of eager over that of the baseline, measured once for the task,
  // by which the score over eager was divided (measure/baselines.h). 0: timed in pairs with the baseline
  // itself.
  double baseline_ratio = 0;
  double variance = 0;  // between the buckets
  int rounds = 0;
  int batch = 1;                                            // calls of the candidate in each timed interval
  int remeasured = 0;                                       // times that it was measured again
  std::vector<std::pair<std::string, std::int64_t>> shape;  // timing shape
  double max_error = 0, error_bound = 0;                    // worst over the checks, and its bound
  // Why right answers are not in float64 (measure/reference.h: NoFloat64); empty: they are.
  std::string without_float64;
  // Samples: 2 x rounds int64 nanoseconds a call (all baseline, or eager where the score was divided; then
  // all candidate), in the binary file.
  std::string blob;  // file name beside the records; empty: none
  std::uint64_t blob_offset = 0, blob_bytes = 0;
  std::uint32_t blob_crc = 0;
  double seconds = 0;  // spent on this candidate
  // Nothing where it is not known: in records of older versions, where a measurement ended early, and on a
  // CPU all but `baseline_alone_ns` and `speedup_before`.
  std::optional<double> gpu_held_s;  // the GPU was this measurement's alone for so long …
  std::optional<double>
      gpu_timed_s;  // … and its calls took so long of it: in checks, and in both arms of the timing
  // A call from an idle GPU, launch latency included.
  std::optional<double> baseline_idle_ns, candidate_idle_ns;
  std::optional<bool> host_bound;  // the baseline takes over 20 % longer from an idle GPU than queued
  // A call of the baseline with no candidate beside it, in the same process: what the pair's must agree with.
  // On a CPU beside a second copy of the baseline, which takes as much memory as a candidate does.
  std::optional<double> baseline_alone_ns;
  // Candidates with host code: a call by its own events on the default stream, to be compared with
  // candidate_ns. Of any: how both sides were timed ("threads": "3 before, 3 after", "processor": "15, for
  // both sides", …; "baseline_batch", of tier `plan` on a GPU: the baseline's calls in each timed interval).
  std::optional<double> candidate_event_ns;
  std::map<std::string, std::string> clock;
  // Of the time that a call's kernels take on the GPU, the share of those that the candidate's sources
  // declare: not of torch's, of libraries', nor of what torch.compile writes. A plan launches no others. By
  // the kernels' names, as the candidate's own process tells them: it may be lied about, and no verdict rests
  // on it.
  std::optional<double> own_share;
  std::optional<double> speedup_before;  // the score that looked too good, and was measured again
  // The least time that a call can take on this device, by its compulsory bytes or its FLOPs, and which of
  // the two: "memory", "compute". Writes may end in a cache, and a better algorithm needs fewer FLOPs: a
  // candidate may be faster.
  std::optional<double> roofline_ns;
  std::string roofline_bound;
  std::optional<GpuState> gpu_before, gpu_after;  // at the first and at the last round
  std::string clock_reasons;   // all that were seen while rounds were taken; empty: not told
  int rounds_thrown_away = 0;  // because the GPU was slowed down around them
  std::optional<DeviceFacts> device;
};
// Right at the one shape that KernelBench asks about, and wrong at another: such a candidate of a task that
// is a module keeps the verdict that it got at the other shape, and is timed all the same. Its score counts
// where KernelBench's conventions are followed, and nowhere else.
inline bool is_one_shape(const Measurement& m) {
  const bool of_timing = m.verdict == Verdict::kOk || m.verdict == Verdict::kHack ||
                         m.verdict == Verdict::kTooFast || m.verdict == Verdict::kUnstable ||
                         m.verdict == Verdict::kSandboxViolation;
  return m.only_hidden && m.speedup > 0 && !of_timing;
}
// roofline_ns / candidate_ns; nothing where one of them is not known.
std::optional<double> roofline_share(const Measurement& m);
const Fields<Measurement>& measurement_fields();
Json to_json(const Measurement& m);
Measurement measurement_from_json(const Json& json);  // throws Error

}  // namespace warpsmith

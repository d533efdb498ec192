// The fields of a measurement.
#include "warpsmith/base/error.h"
#include "warpsmith/records/measurement.h"

namespace warpsmith {

namespace {

using M = Measurement;

template <typename R>
Fields<R> own_code_fields() {
  return {
      field_of<R>(
          "tensor_cores", &CodeFacts::tensor_cores,
          {.meaning = "1: the machine code of its own kernels has instructions of tensor cores. 0 does "
                      "not say that no kernel of a library uses them. Unknown where it has no kernel "
                      "of its own, as are the next three",
           .since = 6}),
      field_of<R>("registers", &CodeFacts::registers,
                  {.meaning = "of a thread, in the one of its own kernels that takes most", .since = 7}),
      field_of<R>(
          "shared_bytes", &CodeFacts::shared_bytes,
          {.unit = "bytes",
           .meaning = "static, of a block (what a launch asks for comes on top), of the kernel with most",
           .since = 7}),
      field_of<R>(
          "spill_bytes", &CodeFacts::spill_bytes,
          {.unit = "bytes",
           .meaning = "that a thread stores and loads for want of registers, each instruction counted "
                      "once, of the kernel with most. Unknown of tier `python`",
           .since = 7}),
  };
}

// One of a GPU's states: its facts as columns, unknown where there is no state.
void add_gpu_state(Fields<M>& fields, const std::string& moment, std::optional<GpuState> M::*state) {
  for (const Field<GpuState>& one : fields_of(GpuState())) {
    if (!one.notes.column) continue;
    Field<M> out{one.name + "_" + moment, one.notes, {}, {}, {}};
    out.notes.presence = Presence::kColumn;
    std::visit(
        [&](const auto& column) {
          using T = typename decltype(column.get(GpuState()))::value_type;
          out.column = FieldColumn<M, T>{
              [get = column.get, state](const M& m) { return m.*state ? get(*(m.*state)) : std::nullopt; },
              [set = column.set, state](M& m, T value) {
                if (!(m.*state)) (m.*state).emplace();
                set(*(m.*state), std::move(value));
              },
              true};
        },
        one.column);
    fields.push_back(std::move(out));
  }
}

// Of a measurement that was timed.
Fields<M> timed_fields() {
  return {
      field(
          "speedup", &M::speedup,
          {.meaning = "the score: time of the baseline / time of the candidate, median of the bucket means; "
                      "not rounded",
           .presence = Presence::kNeeded}),
      field("speedup_rounded", &M::speedup_rounded,
            {.meaning = "two decimals toward 1.00: the reward", .presence = Presence::kNeeded}),
      field("speedup_low", &M::speedup_low,
            {.meaning = "lower end of the score's 95 % interval",
             .presence = Presence::kNeeded,
             .json = "/interval/0"}),
      field("speedup_high", &M::speedup_high,
            {.meaning = "its upper end", .presence = Presence::kNeeded, .json = "/interval/1"}),
      field(
          "imprecise", &M::imprecise,
          {.meaning = "1: the interval is wider than the target, because the time budget ended first or the "
                      "candidate is surely slower than 0.8×",
           .presence = Presence::kWritten}),
      field("baseline_ns", &M::baseline_ns,
            {.unit = "ns", .meaning = "median of one call of the baseline", .presence = Presence::kNeeded}),
      field("candidate_ns", &M::candidate_ns,
            {.unit = "ns", .meaning = "median of one call of the candidate", .presence = Presence::kNeeded}),
      field(
          "baseline_ratio", &M::baseline_ratio,
          {.meaning = "0: timed in pairs with the baseline. Else the score is the one over `eager`, divided "
                      "by this (`ratio` of `/baselines`); `baseline_ns` and `speedup_before` too; "
                      "`baseline_idle_ns`, `baseline_alone_ns`, `host_bound`, the samples and what `detail` "
                      "says are of `eager`"}),
      field("variance", &M::variance,
            {.meaning = "between the buckets, of the log-speedup", .presence = Presence::kWritten}),
      field("batch", &M::batch,
            {.meaning = "calls of the candidate in each timed interval (of the baseline on a GPU, tier "
                        "`plan`: `baseline_batch` in `clock`; else as many)",
             .presence = Presence::kWritten}),
      field("remeasured", &M::remeasured,
            {.meaning = "times that it was measured again", .presence = Presence::kWritten}),
      field("shape", &M::shape, {.meaning = "timing shape (`M=256 N=1024`)", .presence = Presence::kWritten}),
  };
}

Fields<M> first_fields() {
  return {
      field("candidate", &M::candidate,
            {.meaning = "id of the program", .presence = Presence::kWritten, .width = 64}),
      field("task", &M::task, {.meaning = "task", .presence = Presence::kWritten}),
      field("verdict", &M::verdict,
            {.meaning = "what became of it, below", .presence = Presence::kNeeded, .width = 24}),
      field("detail", &M::detail, {.meaning = "what was wrong, and where", .presence = Presence::kWritten}),
      field("hack", &M::hack, {.meaning = "kind, where the verdict is `hack`", .width = kLongestText}),
      field("only_hidden", &M::only_hidden,
            {.meaning =
                 "1: it fails at a hidden shape, and is right at the timing shapes; with a speedup it counts "
                 "as correct for KernelBench (`one_shape`)",
             .since = 8}),
      field("baseline", &M::baseline,
            {.meaning = "what it is compared with", .presence = Presence::kWritten, .width = 32}),
      field("math", &M::math,
            {.meaning = "arithmetic: `strict` or `torch_default`",
             .presence = Presence::kWritten,
             .width = 16}),
      field("rounds", &M::rounds, {.meaning = "paired rounds; 0: not timed"}),
  };
}

Fields<M> later_fields() {
  return {
      field("max_error", &M::max_error, {.meaning = "largest error of the checks"}),
      field("error_bound", &M::error_bound, {.meaning = "its bound"}),
      field("without_float64", &M::without_float64,
            {.meaning = "why the right answers are not in float64 but eager's own in float32, with a bound "
                        "of ten times "
                        "what inputs cost that are one rounding away; empty: they are in float64",
             .since = 11,
             .width = kLongestText}),
      field(
          "roofline_ns", &M::roofline_ns,
          {.unit = "ns",
           .meaning = "least time of a call on that device, by the task's compulsory bytes or its FLOPs (of "
                      "a CPU by its bytes, at the speed of its first-level cache). Divided by "
                      "`candidate_ns`: the share of the roofline. Over 1 is possible: writes may stay in a "
                      "cache, a better algorithm needs fewer FLOPs"}),
      field("roofline_bound", &M::roofline_bound,
            {.meaning = "which of the two: `memory`, `compute`", .width = 8}),
      field("baseline_idle_ns", &M::baseline_idle_ns,
            {.unit = "ns", .meaning = "a call of the baseline from an idle GPU, launch latency included"}),
      field("candidate_idle_ns", &M::candidate_idle_ns,
            {.unit = "ns", .meaning = "the same of the candidate"}),
      field(
          "host_bound", &M::host_bound,
          {.meaning = "1: the baseline takes over 20 % longer from an idle GPU than queued, so it waits for "
                      "launches"}),
      field("baseline_alone_ns", &M::baseline_alone_ns,
            {.unit = "ns",
             .meaning =
                 "a call of the baseline with no candidate beside it, in the same process (the process "
                 "of a candidate with host code may exist, stopped); on the CPU beside a second copy of the "
                 "baseline",
             .since = 6}),
      field("candidate_event_ns", &M::candidate_event_ns,
            {.unit = "ns",
             .meaning = "tiers `extension` and `python`: a call of the candidate by its own events on the "
                        "default stream, to be compared with `candidate_ns`",
             .since = 6}),
      field("clock", &M::clock,
            {.meaning = "on a GPU: how both sides were timed (JSON: `baseline_batch` of tier `plan`, "
                        "`threads`, `processor`, … of tiers `extension` and `python`)",
             .since = 6,
             .width = kLongestText}),
      field("own_share", &M::own_share,
            {.meaning =
                 "share of a call's kernels' time on the GPU that is in kernels which the candidate's "
                 "sources declare; 1 of tier `plan` on a GPU. By their names, as the candidate's own process "
                 "tells them",
             .since = 18}),
      field("speedup_before", &M::speedup_before,
            {.meaning = "the score that looked too good, and was measured again", .since = 6}),
  };
}

Fields<M> last_fields() {
  Fields<M> fields = {
      field("gpu_held_s", &M::gpu_held_s,
            {.unit = "s", .meaning = "the GPU was this measurement's alone for so long"}),
      field("gpu_timed_s", &M::gpu_timed_s,
            {.unit = "s",
             .meaning = "its calls, in checks and in both arms of the timing, took so long of it"}),
      field("gpu_before", &M::gpu_before, {}),
      field("gpu_after", &M::gpu_after, {}),
      field("clock_reasons", &M::clock_reasons,
            {.meaning = "what kept the clocks down while rounds were taken, by NVML: `gpu_idle`, "
                        "`application_clocks`, `sw_power_cap`, `hw_slowdown`, `sync_boost`, "
                        "`sw_thermal_slowdown`, `hw_thermal_slowdown`, `hw_power_brake`, `display_clocks`; "
                        "`none`",
             .width = kLongestText}),
      field("rounds_thrown_away", &M::rounds_thrown_away,
            {.meaning = "because of `hw_slowdown`, a thermal one or a power brake around them; not among "
                        "`rounds`"}),
      field("seconds", &M::seconds, {.unit = "s", .meaning = "spent on it", .presence = Presence::kWritten}),
      field("device", &M::device, {}),
      field("blob", &M::blob, {.json = "/samples/file", .column = false}),
  };
  add_gpu_state(fields, "before", &M::gpu_before);
  add_gpu_state(fields, "after", &M::gpu_after);
  const Fields<M> samples = {
      field("blob_offset", &M::blob_offset,
            {.presence = Presence::kNeeded, .json = "/samples/offset", .column = false}),
      field("blob_bytes", &M::blob_bytes,
            {.presence = Presence::kNeeded, .json = "/samples/bytes", .column = false}),
      field("blob_crc", &M::blob_crc,
            {.presence = Presence::kNeeded, .json = "/samples/crc", .column = false}),
  };
  for (Field<M> one : samples) {
    one.where = [](const M& m) { return !m.blob.empty(); };
    fields.push_back(std::move(one));
  }
  return fields;
}

Fields<M> make_measurement_fields() {
  Fields<M> fields = first_fields();
  for (Field<M> one : timed_fields()) {
    one.where = [](const M& m) { return m.rounds > 0; };
    fields.push_back(std::move(one));
  }
  for (const Fields<M>& more : {later_fields(), own_code_fields<M>(), last_fields()})
    fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

}  // namespace

const Fields<GpuState>& fields_of(const GpuState&) {
  using S = GpuState;
  static const Fields<S> fields = {
      field("sm_clock_mhz", &S::sm_clock_mhz, {.unit = "MHz", .meaning = "clock of the SMs"}),
      field("memory_clock_mhz", &S::memory_clock_mhz, {.unit = "MHz", .meaning = "clock of the memory"}),
      field("temperature_c", &S::temperature_c, {.unit = "°C", .meaning = "temperature of the GPU"}),
      field("power_w", &S::power_w, {.unit = "W", .meaning = "power that the GPU draws"}),
      field("clock_reasons", &S::clock_reasons,
            {.meaning = "what keeps the clocks down, by NVML; empty: not known", .column = false}),
  };
  return fields;
}

void from_text(std::string_view name, Verdict& verdict) {
  const auto parsed = parse_verdict(name);
  if (!parsed) throw Error("unknown verdict `" + std::string(name) + "`");
  verdict = *parsed;
}

Json to_json(const GpuState& state) { return fields_to_json(fields_of(state), state); }

GpuState gpu_state_from_json(const Json& json) {
  GpuState state;
  fields_from_json(fields_of(state), json, state);
  return state;
}

const Fields<CodeFacts>& code_fields() {
  static const Fields<CodeFacts> fields = own_code_fields<CodeFacts>();
  return fields;
}

Json to_json(const CodeFacts& facts) { return fields_to_json(code_fields(), facts); }

CodeFacts code_facts_from_json(const Json& json) {
  CodeFacts facts;
  fields_from_json(code_fields(), json, facts);
  return facts;
}

std::optional<double> roofline_share(const Measurement& m) {
  if (!m.roofline_ns || m.rounds == 0 || !(m.candidate_ns > 0)) return std::nullopt;
  return *m.roofline_ns / m.candidate_ns;
}

const Fields<Measurement>& measurement_fields() {
  static const Fields<Measurement> fields = make_measurement_fields();
  return fields;
}

Json to_json(const Measurement& m) { return fields_to_json(measurement_fields(), m); }

Measurement measurement_from_json(const Json& json) {
  return record_from_json(measurement_fields(), json, "measurement record");
}

}  // namespace warpsmith

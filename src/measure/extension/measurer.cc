#include "measurer.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "arms.h"
#include "hack.h"
#include "processor.h"
#include "timing/judge.h"
#include "timing/roofline.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/measure/check.h"
#include "warpsmith/python/folders.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/python/scripts.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/stats/summary.h"
#include "warpsmith/toolchain/extension.h"

namespace warpsmith::measure {

namespace {

namespace fs = std::filesystem;

// Of either side: long against the clock's own scatter (some microseconds an interval) and what beside it is
// chance, and so short that a host that is busy for a moment spoils few of many: launches take the host's
// time, and one side is half as fast for 10 to 100 ms now and then.
constexpr double kIntervalNs = 2e6;
constexpr double kTarget = 0.01;  // of the interval's half width, at best: as by any host's clock
constexpr int kMostCalls = 2048;
// Of an interval: four places of it fit what a child is told.
constexpr std::uint64_t kMostOperands = 12 << 10;
constexpr int kEstimateRounds = 5, kEstimateCalls = 8, kAloneRounds = 63;
constexpr int kTurns = 9, kTurnRounds = 15;  // some 50 ms each
constexpr double kAgreement = 1.03;          // baseline in the pair against alone
constexpr double kSlowest = 1000;            // times the reference
constexpr double kLongCallNs = 30e6;         // of a candidate: two of them make a row, else one
constexpr double kShortestTimeout = 0.5;     // seconds
constexpr double kCompileSeconds = 120;
constexpr double kPythonFirstCall = 30;  // seconds: torch loads libraries when they are first asked for

// What a clock that hangs on the host can give: buckets by their medians, and a score as long as its interval
// may be a reward.
stats::Protocol by_host_clock(stats::Protocol protocol) {
  protocol.bucket_medians = true;
  protocol.stop_at = 1;
  protocol.target = std::max(protocol.target, kTarget);
  if (protocol.variance_gate <= 0)
    protocol.variance_gate = stats::variance_of(stats::kWidestReward, protocol.buckets);
  return protocol;
}

int calls_a_row(double call_ns, int most) {
  return static_cast<int>(std::clamp(std::round(kIntervalNs / std::max(1.0, call_ns)), 1.0, double(most)));
}

// What the candidates of one task share here, beside the GpuTaskBench, which it refers to.
struct Bench {
  Bench(GpuHarness& harness, GpuTaskBench& task, std::uint64_t the_seed) : seed(the_seed) {
    const task::Dims& dims = task.timing_dims();
    const std::uint64_t bytes =
        std::max<std::uint64_t>(1, input_bytes(task.task(), dims) + output_bytes(task.task(), dims));
    const std::uint64_t tensors =
        std::max<std::size_t>(1, task.task().inputs.size() + task.task().outputs.size());
    const std::uint64_t room =
        std::min(harness.gpu().facts().memory_bytes / 16 / bytes, kMostOperands / tensors);
    {
      const int few = static_cast<int>(std::clamp<std::uint64_t>(room, 1, kEstimateCalls));
      HostClockBaseline first(harness, task.task(), task.reference(), dims, few);
      call_ns =
          stats::median(time_alone(first, few, kEstimateRounds, random_key({seed, name_key("host clock")})));
    }
    most_calls = static_cast<int>(std::max(1.0, std::min<double>(kMostCalls, static_cast<double>(room) - 1)));
    calls = calls_a_row(call_ns, most_calls);
    baseline.emplace(harness, task.task(), task.reference(), dims, calls);
  }
  // Nanoseconds a call with nothing beside it.
  std::vector<double> alone() {
    return time_alone(*baseline, calls, kAloneRounds,
                      random_key({seed, name_key("host clock alone"), ++alone_taken}));
  }
  std::uint64_t seed, alone_taken = 0;
  double call_ns = 0;
  int calls = 1, most_calls = 1;  // of the baseline in a row; that there is room for
  std::vector<double> alone_ns;   // empty until they are asked for
  std::optional<HostClockBaseline> baseline;
};

}  // namespace

std::vector<fs::path> library_folders() {
  std::set<fs::path> folders;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        const fs::path path = info->dlpi_name != nullptr ? info->dlpi_name : "";
        const std::string name = path.filename().string();
        if (name.starts_with("libcublas") || name.starts_with("libcudnn") || name.starts_with("libnvrtc")) {
          std::error_code error;
          static_cast<std::set<fs::path>*>(data)->insert(fs::canonical(path.parent_path(), error));
        }
        return 0;
      },
      &folders);
  folders.erase(fs::path());
  return {folders.begin(), folders.end()};
}

struct ExtensionMeasurer::State {
  State(GpuHarness& the_harness, Settings& the_settings, GpuSurroundings the_surroundings)
      : harness(the_harness),
        settings(the_settings),
        surroundings(std::move(the_surroundings)),
        by_host(the_settings),
        level(process::available_sandbox()),
        processor(Processor::claim(harness)) {
    by_host.protocol = by_host_clock(settings.protocol);
    options.libraries = library_folders();
    options.gpu = harness.gpu().facts().uuid;
    options.sandbox = level;
    if (processor) options.cpu = processor->number();
  }

  Bench& bench_of(GpuTaskBench& task) {
    if (!bench) bench = std::make_unique<Bench>(harness, task, settings.seed);
    return *bench;
  }

  const ExtensionOverhead& overhead_here() {
    if (!overhead) {
      device::ExtensionSession empty(options);
      overhead = measure_overhead(harness, empty);
    }
    return *overhead;
  }

  // What runs a Python module under the task's math. Nothing: there is no python3 here.
  static std::optional<device::ExtensionInterpreter> interpreter_for(const task::Task& task) {
    const std::optional<fs::path> python = python::find_python();
    if (!python) return std::nullopt;
    device::ExtensionInterpreter interpreter;
    interpreter.command = python::python_command(*python);
    interpreter.script = python::candidate_script();
    interpreter.folders = python::python_folders(*python);
    interpreter.environment = python::python_variables();
    interpreter.math = task.math;
    return interpreter;
  }

  std::unique_ptr<ExtensionCandidate> start(GpuTaskBench& task, const fs::path& binary, Ran* loaded) {
    device::ExtensionOptions o = options;
    o.binary = binary;
    if (interpreter) {
      o.interpreter = interpreter;
      if (kept) o.interpreter->kept = kept->path();
      o.first_call_s = kPythonFirstCall;
    }
    o.arena_bytes = task.task().memory_bytes;
    o.call_timeout_s = std::min(settings.call_timeout_s,
                                std::max(kShortestTimeout, kSlowest * task.baseline_call_ns() * 1e-9));
    auto candidate = std::make_unique<ExtensionCandidate>(harness, task.task(), o);
    *loaded = candidate->load();
    return candidate;
  }

  // What was taken while the candidate stood still, and is taken again when its process is gone.
  struct AtRest {
    double values_ns = 0;               // the most that a row's values took
    double look_ns = 0;                 // ExtensionArm::look_alone_ns()
    std::unique_ptr<ExtensionArm> arm;  // nothing: the candidate was not timed to the end
  };

  Timing time_candidate(GpuTaskBench& task, ExtensionCandidate& candidate, Measurement& m, AtRest* rest) {
    const StayOn here(options.cpu);
    Bench& b = bench_of(task);
    const ExtensionOverhead& around = overhead_here();
    PairSettings pairs = pair_settings(by_host, m.task, m.candidate, m.remeasured);
    pairs.calls = b.calls;
    double call_ns = 0;
    if (const Ran ran = estimate(task, candidate, pairs.key, &call_ns); ran.verdict != Verdict::kOk)
      return failed_timing(ran);
    surroundings.watch_rounds(pairs);
    if (!m.gpu_before) m.gpu_before = surroundings.state_now();
    for (int tries = 0; tries < kMostEstimates; ++tries) {
      if (tries > 0) pairs.key = random_key({pairs.key, name_key("anew")});
      const int least = call_ns < kLongCallNs ? std::min(2, b.most_calls) : 1;
      pairs.candidate_calls = std::max(least, calls_a_row(call_ns, b.most_calls));
      auto own = std::make_unique<ExtensionArm>(candidate, task.reference(), task.timed_bounds(),
                                                task.timing_dims(), pairs.candidate_calls, around);
      ExtensionArm& arm = *own;
      if (arm.outcome().verdict != Verdict::kOk) return failed_timing(arm.outcome());
      const double before_ns = values_alone(b, pairs.candidate_calls, pairs.key, 0);
      arm.expect_values(before_ns);
      const double look_ns = arm.look_alone_ns(pairs.candidate_calls);
      Timing timing = judge(by_host, time_pairs(*b.baseline, arm, pairs), pairs.candidate_calls);
      m.gpu_after = surroundings.state_now();
      m.rounds_thrown_away += timing.pairs.rounds_thrown_away;
      note_timed(timing, b.calls);
      if (timing.pairs.verdict != Verdict::kOk) return timing;
      call_ns = stats::median(to_doubles(timing.pairs.candidate_ns));
      // A row that is far shorter than it should be is not what was estimated.
      if (pairs.candidate_calls < std::min(b.most_calls, calls_a_row(call_ns, b.most_calls) / 2)) continue;
      const double behind_ns = values_alone(b, timing.calls, pairs.key, 1);
      timing =
          look_closer(b, candidate, arm, std::move(timing), std::min(before_ns, behind_ns), pairs.key, m);
      *rest = {std::max(before_ns, behind_ns), look_ns, std::move(own)};
      return timing;
    }
    return failed_timing(
        {Verdict::kUnstable,
         fmt::format("its calls take other times whenever they are timed, {:.0f} ns at last", call_ns), 0});
  }

  // What a call takes, roughly, in some short rows: the least, for a host can only be held up.
  Ran estimate(GpuTaskBench& task, ExtensionCandidate& candidate, std::uint64_t key, double* call_ns) {
    Bench& b = bench_of(task);
    const int few = std::min(b.calls, kEstimateCalls);
    ExtensionArm arm(candidate, task.reference(), task.timed_bounds(), task.timing_dims(), few,
                     overhead_here());
    if (arm.outcome().verdict != Verdict::kOk) return arm.outcome();
    arm.begin(random_key({key, name_key("estimate")}));
    int calls = 1;
    for (int i = 0; i < kEstimateRounds; ++i) {
      arm.renew(random_key({key, name_key("estimate"), static_cast<std::uint64_t>(i)}), calls);
      const Ran row = arm.run(calls);
      if (row.verdict != Verdict::kOk) return row;
      const double each = static_cast<double>(row.elapsed_ns) / calls;
      // The first call of all brings much with it.
      *call_ns = i < 2 ? each : std::min(*call_ns, each);
      if (i > 0) calls = std::min(few, calls_a_row(*call_ns, few));
    }
    return {};
  }

  // `number`: which time for this candidate, which stands still.
  static double values_alone(Bench& b, int calls, std::uint64_t key, std::uint64_t number) {
    return b.baseline->values_ns(calls, random_key({key, name_key("values alone"), number}));
  }

  // At a timing that looks well.
  Timing look_closer(Bench& b, ExtensionCandidate& candidate, ExtensionArm& arm, Timing timing,
                     double values_ns, std::uint64_t key, Measurement& m) {
    look_for_hacks(candidate, arm, values_ns, timing, m);
    timing.clock_facts["baseline_batch"] = std::to_string(b.calls);
    if (timing.pairs.verdict != Verdict::kOk) return timing;
    timing.pair_ns = stats::median(to_doubles(timing.pairs.baseline_ns));
    compare_with_alone(b, timing, false);
    if (!timing.baseline_agrees) compare_with_alone(b, timing, true);
    if (!timing.baseline_agrees) compare_in_turns(b, arm, timing, key);
    return timing;
  }

  // That the intervals of both sides took: the GPU may have waited for the host in them.
  void note_timed(const Timing& timing, int baseline_calls) {
    for (const std::int64_t each : timing.pairs.baseline_ns)
      harness.add_timed(static_cast<double>(each) * baseline_calls);
    for (const std::int64_t each : timing.pairs.candidate_ns)
      harness.add_timed(static_cast<double>(each) * timing.calls);
  }

  void compare_with_alone(Bench& b, Timing& timing, bool anew) const {
    if (anew || b.alone_ns.empty()) b.alone_ns = b.alone();
    timing.alone_ns = stats::median(b.alone_ns);
    timing.alone_error = stats::median_error(b.alone_ns) / timing.alone_ns;
    timing.baseline_agrees = baseline_agrees(timing, kAgreement);
  }

  // A host's processors grow slower and faster by a quarter within seconds: what was alone a second ago may
  // differ from what is beside the candidate now for that alone.
  static void compare_in_turns(Bench& b, ExtensionArm& arm, Timing& timing, std::uint64_t key) {
    const Turns turns = time_in_turns(*b.baseline, arm, {b.calls, timing.calls}, kTurns, kTurnRounds, key);
    if (turns.failed.verdict != Verdict::kOk) {
      timing = failed_timing(turns.failed);
      return;
    }
    timing.pair_ns = stats::median(turns.beside_ns);
    timing.alone_ns = stats::median(turns.alone_ns);
    timing.baseline_agrees = turns_agree(turns, timing.score.speedup(), kAgreement);
    timing.clock_facts["baseline_in_turns"] =
        fmt::format("{:.0f} ns beside the candidate, {:.0f} ns alone", timing.pair_ns, timing.alone_ns);
  }

  void look_for_hacks(const ExtensionCandidate& candidate, const ExtensionArm& arm, double values_alone_ns,
                      Timing& timing, Measurement& m) {
    const ExtensionArm::Clocks clocks = arm.clocks();
    const ClockFacts facts{.ours_ns = clocks.ours_ns,
                           .events_ns = clocks.events_ns,
                           .late_ns = clocks.late_ns,
                           .threads_before = candidate.session().threads_before(),
                           .threads_after = candidate.session().threads(),
                           .libraries = libraries,
                           .moved = candidate.session().moved(),
                           .armed_ns = clocks.armed_ns,
                           .values_ns = clocks.values_ns,
                           .values_alone_ns = values_alone_ns,
                           .outside_ns = overhead->outside_ns};
    timing.event_ns = clocks.events_ns / timing.calls;
    timing.clock_facts = {
        {"clock", "the host's, over rows of calls and device-wide synchronisation"},
        {"candidate_clock_ns", fmt::format("{:.0f}", clocks.ours_ns / timing.calls)},
        {"late_ns", fmt::format("{:.0f}", clocks.late_ns)},
        {"armed_ns", fmt::format("{:.0f}", clocks.armed_ns)},
        {"values_ns",
         fmt::format("{:.0f}, {:.0f} without the candidate", clocks.values_ns, facts.values_alone_ns)},
        {"empty_interval_ns", fmt::format("{:.0f}; ready {:.0f}, a look {:.0f}", overhead->interval_ns,
                                          overhead->arm_ns, overhead->look_ns)},
        {"threads", fmt::format("{} before, {} after", facts.threads_before, facts.threads_after)},
        {"processor", options.cpu < 0 ? "any" : fmt::format("{}, for both sides", options.cpu)}};
    const std::string kind = hack_of(facts, &timing.pairs.detail);
    if (kind.empty()) return;
    timing.pairs.verdict = Verdict::kHack;
    m.hack = kind;
    write_clock(timing, m);
  }

  static void write_clock(const Timing& timing, Measurement& m) {
    m.candidate_event_ns = timing.event_ns;
    m.clock = timing.clock_facts;
  }

  bool accept(const Timing& timing, Measured& out) const {
    Measurement& m = out.measurement;
    if (write_failure(timing, m)) return false;
    write_score(settings, timing, out);
    write_clock(timing, m);
    m.verdict = Verdict::kOk;
    m.baseline_alone_ns = timing.alone_ns;
    surroundings.write_roofline(m);
    if (const double floor_ns = surroundings.floor_ns(m.candidate_ns); m.candidate_ns < floor_ns) {
      m.verdict = Verdict::kTooFast;
      m.detail = too_fast_words(m.candidate_ns, floor_ns);
      return false;
    }
    if (!timing.baseline_agrees && !slow_all_the_same(timing)) {
      m.verdict = Verdict::kUnstable;
      m.detail = baseline_words(timing);
      return false;
    }
    m.imprecise = m.imprecise || !timing.baseline_agrees;
    return stable(by_host, timing, m);
  }

  // In this child, which ends with it.
  Timing time_once(GpuTaskBench& task, std::unique_ptr<ExtensionCandidate> candidate, Measurement& m) {
    AtRest rest;
    Timing timing = time_candidate(task, *candidate, m, &rest);
    candidate.reset();
    if (timing.pairs.verdict != Verdict::kOk || !rest.arm) return timing;
    // Now nothing of it is on the GPU any more.
    const StayOn here(options.cpu);
    const double gone_ns = values_alone(*bench, timing.calls, settings.seed, 2);
    std::string busy = busy_while_stopped(rest.values_ns, gone_ns);
    if (busy.empty()) busy = charge_for_looks(rest, timing);
    if (busy.empty()) return timing;
    bench->alone_ns.clear();
    m.hack = kLateWork;
    write_clock(timing, m);
    return failed_timing({Verdict::kHack, busy, 0});
  }

  // What a look took alone was taken off each row's. What it takes less now, the rows took behind their
  // answers. Returns what is wrong where that is more than chance.
  std::string charge_for_looks(const AtRest& rest, Timing& timing) const {
    const ExtensionArm::Clocks clocks = rest.arm->clocks();
    const double late_ns = clocks.late_ns + rest.look_ns - rest.arm->look_alone_ns(timing.calls);
    timing.clock_facts["late_ns"] = fmt::format("{:.0f}", late_ns);
    std::string detail;
    hack_of({.ours_ns = clocks.ours_ns, .events_ns = clocks.ours_ns, .late_ns = late_ns}, &detail);
    const double unpaid =
        charge_beside_clock(late_ns, clocks.ours_ns) - charge_beside_clock(clocks.late_ns, clocks.ours_ns);
    charge(by_host, unpaid / timing.calls, timing);
    return detail;
  }

  // In a fresh child.
  Timing again(GpuTaskBench& task, const fs::path& binary, Measurement& m) {
    ++m.remeasured;
    m.hack.clear();
    Ran loaded;
    std::unique_ptr<ExtensionCandidate> fresh = start(task, binary, &loaded);
    return loaded.verdict == Verdict::kOk ? time_once(task, std::move(fresh), m) : failed_timing(loaded);
  }

  // What is doubtful is timed again: also where the buckets disagree, as a host that is busy for some seconds
  // has them do. What is found beside the clock twice is none of the host's.
  Timing without_doubt(GpuTaskBench& task, const fs::path& binary, Timing timing, Measurement& m) {
    int found = 0;
    for (int times = 1;; ++times) {
      const bool beside_clock =
          timing.pairs.verdict == Verdict::kHack && (m.hack == kBeforeClock || m.hack == kLateWork);
      const bool agrees = timing.baseline_agrees || slow_all_the_same(timing);
      const bool doubtful = timing.pairs.verdict == Verdict::kOk && !(agrees && steady(by_host, timing));
      if (!(beside_clock && ++found == 1) && !(doubtful && times < kMostTimings)) return timing;
      timing = again(task, binary, m);
    }
  }

  void time_and_judge(GpuTaskBench& task, std::unique_ptr<ExtensionCandidate> candidate,
                      const fs::path& binary, Measured& out) {
    Measurement& m = out.measurement;
    const Timing timing = without_doubt(task, binary, time_once(task, std::move(candidate), m), m);
    if (!accept(timing, out)) return;
    if (looks_too_good(settings, m) || beats_its_flops(m)) {
      const double before = m.speedup;
      m.speedup_before = before;
      const Timing second = without_doubt(task, binary, again(task, binary, m), m);
      const bool lower = second.pairs.verdict != Verdict::kOk || second.score.speedup() < before;
      if (accept(lower ? second : timing, out) && second.pairs.verdict == Verdict::kOk)
        compare_scores(before, second.score.speedup(), m);
    }
    if (m.verdict == Verdict::kOk) {
      double& best = settings.best[m.task];
      best = std::max(best, m.speedup);
    }
  }

  GpuHarness& harness;
  Settings& settings;
  GpuSurroundings surroundings;
  Settings by_host;  // the same by the host's clock
  process::SandboxLevel level;
  std::optional<Processor> processor;
  device::ExtensionOptions options;
  std::unique_ptr<Bench> bench;
  std::optional<ExtensionOverhead> overhead;
  std::optional<TemporaryFolder> kept;  // of compile_at_first_run()
  // Of the candidate that is measured.
  std::optional<device::ExtensionInterpreter> interpreter;
  bool libraries = false;
};

ExtensionMeasurer::ExtensionMeasurer(GpuHarness& harness, Settings& settings, GpuSurroundings surroundings)
    : state_(std::make_unique<State>(harness, settings, std::move(surroundings))) {}
ExtensionMeasurer::~ExtensionMeasurer() = default;
void ExtensionMeasurer::forget_task() { state_->bench.reset(); }

Ran ExtensionMeasurer::compile_at_first_run(const task::Task& task, const Candidate& candidate,
                                            const fs::path& binary) {
  State& s = *state_;
  s.kept.reset();
  const bool asks = std::any_of(candidate.files.begin(), candidate.files.end(), [](const SourceFile& file) {
    return file.content.find("triton") != std::string::npos;
  });
  if (candidate.tier != Tier::kPython || !asks) return {};
  device::ExtensionOptions o = s.options;
  o.binary = binary;
  o.interpreter = State::interpreter_for(task::under_math(task, s.settings.math));
  if (!o.interpreter) return {};
  if (s.level != process::SandboxLevel::kNone && !process::keeps_signals_inside(s.level))
    return {Verdict::kUnsupported,
            "the sandbox of this machine does not keep signals inside, and Triton's compilers are processes",
            0};
  s.kept.emplace("kept");
  o.interpreter->kept = s.kept->path();
  o.interpreter->may_compile = true;
  o.arena_bytes = task.memory_bytes;
  o.first_call_s = kCompileSeconds;
  o.call_timeout_s = s.settings.call_timeout_s;
  ExtensionCandidate first(s.harness, task, o);
  Ran ran = first.load();
  const double until = seconds_now() + kCompileSeconds;
  std::vector<task::Dims> shapes = task.timing;
  shapes.insert(shapes.end(), task.hidden.begin(), task.hidden.end());
  for (std::size_t i = 0; i < shapes.size() && ran.verdict == Verdict::kOk; ++i) {
    const std::unique_ptr<GpuOperands> operands = first.lay_out(shapes[i], 1, &ran);
    if (ran.verdict != Verdict::kOk) break;
    GpuInputs inputs(task, shapes[i]);
    inputs.add(random_key({s.settings.seed, name_key("first run"), i}), *operands, 0);
    inputs.fill(s.harness);
    settle(s.harness);
    const device::ExtensionRun run = first.session().run(0, 1);
    ran = {run.verdict, run.detail, 0};
    if (seconds_now() > until)
      ran = {Verdict::kTimeout, fmt::format("what it compiles takes over {:.0f} s", kCompileSeconds), 0};
  }
  // As Triton says it of this machine.
  if (ran.detail.find("Failed to find C compiler") != std::string::npos) ran.verdict = Verdict::kUnsupported;
  if (ran.verdict == Verdict::kOk) return ran;
  s.kept.reset();
  ran.detail += ", when it first ran";
  return ran;
}

void ExtensionMeasurer::measure(GpuTaskBench& task, const Candidate& source, const fs::path& binary,
                                Measured& out) {
  State& s = *state_;
  const struct Forget {
    std::optional<TemporaryFolder>& kept;
    ~Forget() { kept.reset(); }
  } forget{s.kept};
  Measurement& m = out.measurement;
  m.device->sandbox = std::string(process::to_string(s.level));
  const bool of_python = source.tier == Tier::kPython;
  s.interpreter = of_python ? State::interpreter_for(task.task()) : std::nullopt;
  // torch may ask cuBLAS and cuDNN for any operator.
  s.libraries = of_python || !toolchain::read_extension_facts(binary).libraries.empty();
  if (of_python && !s.interpreter) {
    m.verdict = Verdict::kUnsupported;
    m.detail = "there is no python3 here, and candidates of tier `python` want one";
    return;
  }
  Ran loaded;
  std::unique_ptr<ExtensionCandidate> candidate = s.start(task, binary, &loaded);
  m.verdict = loaded.verdict;
  m.detail = loaded.detail;
  if (loaded.verdict != Verdict::kOk) return;
  if (!write_checks(check_candidate(*candidate, task.task(), task.oracle(), task.cases()), task.task(),
                    task.oracle(), task.cases(), m))
    return;
  if (s.settings.timing) s.time_and_judge(task, std::move(candidate), binary, out);
}

}  // namespace warpsmith::measure

#include "measurer.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "arms.h"
#include "hack.h"
#include "host_rows.h"
#include "own_kernels.h"
#include "processor.h"
#include "timing/judge.h"
#include "timing/roofline.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
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

constexpr double kTarget = 0.01;  // of the interval's half width, at best: as by any host's clock
constexpr int kEstimateRounds = 5;
constexpr int kMatchRounds = 7;
constexpr double kOtherCall = 1.3;  // times apart
// A candidate's row may be so many times shorter or longer than the baseline's.
constexpr double kShorterRow = 2, kLongerRow = 1.25;
constexpr int kFewerLater = 4;            // looks behind the first 35 rounds: each costs some rows
constexpr double kLoadSeconds = 60;       // of a python3 and torch
constexpr double kAgreement = 1.03;       // baseline in the pair against alone
constexpr double kSlowest = 1000;         // times the reference
constexpr double kShortestTimeout = 0.5;  // seconds
constexpr double kCompileSeconds = 120;
// On top of a task's memory where torch.compile tries kernels: it empties the GPU's cache between them.
constexpr std::uint64_t kTrialBytes = 512ull << 20;
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

bool mentions(const Candidate& candidate, std::string_view word) {
  return std::any_of(candidate.files.begin(), candidate.files.end(),
                     [&](const SourceFile& file) { return file.content.find(word) != std::string::npos; });
}

// As torch's function, or as a module's method; regular expressions have one of that name as well.
bool calls_compile(const SourceFile& file) {
  constexpr std::string_view kCall = ".compile(", kOther = "re";
  const std::string_view text = file.content;
  for (std::size_t at = text.find(kCall); at != text.npos; at = text.find(kCall, at + 1))
    if (!text.substr(0, at).ends_with(kOther)) return true;
  return false;
}

bool mentions_torch_compile(const Candidate& candidate) {
  const std::vector<SourceFile>& files = candidate.files;
  return std::any_of(files.begin(), files.end(), calls_compile) || mentions(candidate, "torch.compile") ||
         mentions(candidate, "import compile") || mentions(candidate, "_dynamo") ||
         mentions(candidate, "_inductor");
}

// The task's reference does not run as a program of Python.
struct NotPython : Error {
  explicit NotPython(const std::string& why) : Error("the reference does not run in python3: " + why) {}
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
  State(GpuHarness& the_harness, Settings& the_settings, EngineDevice& device)
      : harness(the_harness),
        settings(the_settings),
        engine_device(device),
        by_host(the_settings),
        engine(settings, by_host, device,
               {.agreement = kAgreement,
                .most_timings = kMostTimings,
                .doubts_buckets = true,
                .slow_baseline_may_pass = true}),
        level(process::available_sandbox()),
        processor(Processor::claim(harness)) {
    by_host.protocol = by_host_clock(settings.protocol);
    options.libraries = library_folders();
    options.gpu = harness.gpu().facts().uuid;
    options.sandbox = level;
    if (processor) options.cpu = processor->number();
  }

  // Of children of the candidate's kind: measured in the first of them, before anything is loaded into it.
  std::optional<ExtensionOverhead>& overhead_of_kind() { return overheads[interpreter ? 1 : 0]; }
  const ExtensionOverhead& overhead_here() { return overhead_of_kind().value(); }

  // What runs a Python module under the task's math. Nothing: there is no python3 here.
  static std::optional<device::ExtensionInterpreter> interpreter_for(const task::Task& task) {
    const std::optional<fs::path> python = python::find_python();
    if (!python) return std::nullopt;
    device::ExtensionInterpreter interpreter;
    interpreter.command = python::python_command(*python);
    interpreter.script = python::candidate_script();
    interpreter.folders = python::python_folders(*python);
    interpreter.environment = python::python_variables();
    interpreter.module = task.module;
    interpreter.math = task.math;
    return interpreter;
  }

  // Of a child for what `binary` holds. `kept_folder`: of compile_at_first_run(), or nothing.
  device::ExtensionOptions options_of(const task::Task& task, const fs::path& binary,
                                      const fs::path& kept_folder) const {
    device::ExtensionOptions o = options;
    o.binary = binary;
    if (interpreter) {
      o.interpreter = interpreter;
      o.interpreter->kept = kept_folder;
      o.first_call_s = kPythonFirstCall;
    }
    o.arena_bytes = task.memory_bytes;
    // A module is made on the host, with its parameters, and may make them from others.
    for (const task::TensorSpec& tensor : task.state)
      o.host_memory_bytes += 2 * tensor_bytes(tensor, task.timing.front());
    o.waits = true;
    return o;
  }

  // A child that nobody has started before the turn at the GPU: a python3 takes seconds to load torch, and
  // others may have the GPU meanwhile.
  void start_late(const task::Task& task, const fs::path& binary, const fs::path& kept_folder) {
    const auto start = [&] {
      const auto started =
          waiting.emplace(binary, device::ExtensionSession(options_of(task, binary, kept_folder)));
      started->second.wait_until_loaded(kLoadSeconds);
    };
    if (!interpreter) return start();
    engine_device.without_device(start);
    phase_begin = seconds_now();
  }

  // A child that has loaded it: the one that waits for this, or a fresh one.
  std::unique_ptr<ExtensionCandidate> start(GpuBench& task, const fs::path& binary,
                                            const fs::path& kept_folder, const std::string& whose,
                                            Ran* loaded) {
    const double slowest = std::max(kShortestTimeout, kSlowest * task.baseline_call_ns() * 1e-9);
    if (!waiting.contains(binary)) start_late(task.task(), binary, kept_folder);
    device::ExtensionSession session = std::move(waiting.extract(waiting.find(binary)).mapped());
    for (auto& [what, other] : waiting) other.wait_for_context();  // nothing else is to be on the GPU
    session.open(std::min(settings.call_timeout_s, slowest), least_launch_ns);
    least_launch_ns = session.least_launch_ns();
    if (std::optional<ExtensionOverhead>& overhead = overhead_of_kind(); !overhead) {
      const StayOn here(options.cpu);
      overhead = measure_overhead(harness, session);
    }
    end_phase(whose + "start");
    auto candidate = std::make_unique<ExtensionCandidate>(harness, task.task(), std::move(session));
    *loaded = candidate->load();
    end_phase(whose + "load");
    return candidate;
  }

  std::unique_ptr<ExtensionCandidate> start(GpuBench& task, const fs::path& binary, Ran* loaded) {
    return start(task, binary, kept ? kept->path() : fs::path(), "", loaded);
  }

  // The reference as a candidate of tier `python`, which does its work so often in a call.
  fs::path reference_file(const task::Task& task, int times) {
    if (!references) references.emplace("references");
    const fs::path path = references->path() / fmt::format("{}.json", times);
    write_file_atomic(path, Json{{"task", task.id}, {"reference", task.reference}, {"times", times}}.dump());
    return path;
  }

  // What the time with the GPU's lock went to, from one end to the next.
  void begin_phases() {
    phases.clear();
    phase_begin = seconds_now();
  }
  void end_phase(const std::string& name) {
    phases += fmt::format("{}{} {:.2f}", phases.empty() ? "" : ", ", name, seconds_now() - phase_begin);
    phase_begin = seconds_now();
  }

  // The baseline as the candidate's tier meets it. Throws NotPython.
  HostRows& rows_of(GpuBench& task) {
    return task.host_rows(interpreter ? kPythonRows : kExtensionRows, [&] {
      HostRows::Make make = [&](int most_calls) {
        return std::make_unique<HostClockBaseline>(harness, task.task(), task.reference(), task.timing_dims(),
                                                   most_calls);
      };
      if (interpreter) {
        Ran loaded;
        std::shared_ptr<ExtensionCandidate> child =
            start(task, reference_file(task.task(), 1), {}, "baseline's ", &loaded);
        if (loaded.verdict != Verdict::kOk) throw NotPython(loaded.detail);
        make = [&, child](int most_calls) {
          return std::make_unique<ChildBaseline>(child, task.reference(), task.timed_bounds(),
                                                 task.timing_dims(), most_calls, overhead_here());
        };
      }
      auto rows = std::make_unique<HostRows>(harness, task, pace(), settings.seed, make);
      end_phase("baseline");
      phases += " (" + rows->spent() + ")";
      return rows;
    });
  }

  const Pace& pace() const { return interpreter ? kPythonPace : kExtensionPace; }

  // What was taken while the candidate stood still, and is taken again when its process is gone.
  struct AtRest {
    double values_ns = 0;               // the most that a row's values took
    double look_ns = 0;                 // ExtensionArm::look_alone_ns()
    std::unique_ptr<ExtensionArm> arm;  // nothing: the candidate was not timed to the end
  };

  Timing time_candidate(GpuBench& task, ExtensionCandidate& candidate, Measurement& m, AtRest* rest) {
    const StayOn here(options.cpu);
    HostRows& rows = rows_of(task);
    PairSettings pairs = pair_settings(by_host, m.task, m.candidate, m.remeasured);
    pairs.fewer_later = kFewerLater;
    double call_ns = 0;
    if (const Ran ran = estimate(task, candidate, pairs.key, &call_ns); ran.verdict != Verdict::kOk)
      return failed_timing(ran);
    end_phase("estimate");
    const int most = rows.most_calls();
    for (int tries = 0; tries < kMostEstimates; ++tries) {
      if (tries > 0) pairs.key = random_key({pairs.key, name_key("anew")});
      pairs.candidate_calls = HostRows::calls_a_row(pace(), call_ns, most);
      std::unique_ptr<ExtensionArm> own;
      if (const Ran ran = match(task, rows, candidate, call_ns, pairs, &own); ran.verdict != Verdict::kOk)
        return failed_timing(ran);
      end_phase("equal rows");
      ExtensionArm& arm = *own;
      const double before_ns = values_alone(rows, pairs.candidate_calls, pairs.key, 0);
      arm.expect_values(before_ns);
      const double look_ns = arm.look_alone_ns(pairs.candidate_calls);
      end_phase("values alone");
      Timing timing = engine.time(rows.baseline(), arm, pairs, m);
      end_phase("pairs");
      note_timed(timing, pairs.calls);
      if (timing.pairs.verdict != Verdict::kOk) return timing;
      call_ns = stats::median(to_doubles(timing.pairs.candidate_ns));
      // A row of another length than the baseline's is not what was estimated.
      const double baseline_ns = stats::median(to_doubles(timing.pairs.baseline_ns)) * pairs.calls;
      if (pairs.candidate_calls < most && call_ns * pairs.candidate_calls < baseline_ns / kShorterRow)
        continue;
      if (pairs.candidate_calls > kFewestCalls && call_ns * pairs.candidate_calls > baseline_ns * kLongerRow)
        continue;
      const double behind_ns = values_alone(rows, timing.calls, pairs.key, 1);
      look_closer(rows, candidate, arm, timing, std::min(before_ns, behind_ns), pairs);
      end_phase("looks");
      *rest = {std::max(before_ns, behind_ns), look_ns, std::move(own)};
      return timing;
    }
    return failed_timing(
        {Verdict::kUnstable,
         fmt::format("its calls take other times whenever they are timed, {:.0f} ns at last", call_ns), 0});
  }

  // What a call takes, roughly, in some short rows: the least, for a host can only be held up.
  Ran estimate(GpuBench& task, ExtensionCandidate& candidate, std::uint64_t key, double* call_ns) {
    const int few = std::min(rows_of(task).calls(), rows_of(task).few_calls());
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
      if (i > 0) calls = std::min(few, HostRows::calls_a_row(pace(), *call_ns, few));
    }
    return {};
  }

  // An arm, and calls of both sides whose rows are equally long. The first calls of a row take longer, since
  // the processor's caches are empty, and that must be the same share of both sides' rows. `pairs` comes with
  // the candidate's calls that `call_ns` makes a row of.
  Ran match(GpuBench& task, HostRows& rows, ExtensionCandidate& candidate, double call_ns,
            PairSettings& pairs, std::unique_ptr<ExtensionArm>* arm) {
    const int most = rows.most_calls(), least = std::min(kFewestCalls, pairs.candidate_calls);
    // With fewer calls it could not become as short.
    const bool is_long = pairs.candidate_calls == least && call_ns * least > rows.estimated_row_ns();
    pairs.calls = rows.calls();
    if (is_long) {
      pairs.calls = rows.calls_beside(call_ns, rows.estimated_row_ns() / rows.calls(), least, least).own;
    } else {
      // Begun with as many calls on both sides, or with what rows of few calls told of quite another one: of
      // rows with different numbers of calls, the shorter one's call looks longer.
      const double beside = rows.few_call_ns() / std::max(1.0, call_ns);
      const double wanted = rows.calls() * (ratio_apart(beside, 1) > kOtherCall ? beside : 1);
      pairs.candidate_calls = static_cast<int>(std::clamp<double>(std::round(wanted), least, most));
    }
    int room = 0;
    for (std::uint64_t tries = 0;; ++tries) {
      if (const int wanted = rows.room_for(pairs.candidate_calls); wanted != room) {
        room = wanted;
        arm->reset();
        *arm = std::make_unique<ExtensionArm>(candidate, task.reference(), task.timed_bounds(),
                                              task.timing_dims(), room, overhead_here());
        if ((*arm)->outcome().verdict != Verdict::kOk) return (*arm)->outcome();
      }
      // No more than is taken off the baseline's: a child may lie about what its rows waited for.
      (*arm)->take_off_call(rows.call_overhead_ns(), rows.baseline().taken_off_ns());
      if (is_long) return {};
      Ran failed;
      std::vector<double> own;
      const std::uint64_t key = random_key({pairs.key, name_key("match"), tries});
      const std::vector<double> baseline = time_beside(
          rows.baseline(), **arm, {pairs.calls, pairs.candidate_calls}, kMatchRounds, key, &failed, &own);
      if (failed.verdict != Verdict::kOk) return failed;
      // Who idles here would get longer rows.
      const int drawn = static_cast<int>(key % static_cast<std::uint64_t>(pairs.candidate_calls));
      if (Ran looked = (*arm)->inspect(drawn); looked.verdict != Verdict::kOk) return looked;
      (*arm)->forget_clocks();
      const bool is_last = tries + 1 == kMostEstimates;
      const std::optional<RowCalls> calls =
          rows.other_calls_beside({pairs.calls, pairs.candidate_calls}, stats::median(own),
                                  stats::median(baseline), least, is_last ? room : most);
      if (!calls) return {};
      pairs.calls = calls->own;
      pairs.candidate_calls = calls->others;
      if (is_last) return {};
    }
  }

  // `number`: which time for this candidate, which stands still.
  static double values_alone(HostRows& rows, int calls, std::uint64_t key, std::uint64_t number) {
    return rows.baseline().values_ns(calls, random_key({key, name_key("values alone"), number}));
  }

  // At a timing that looks well.
  void look_closer(HostRows& rows, ExtensionCandidate& candidate, ExtensionArm& arm, Timing& timing,
                   double values_ns, const PairSettings& pairs) {
    look_for_hacks(candidate, arm, values_ns, rows.call_overhead_ns(), rows.baseline().launch_ns(), timing);
    if (timing.pairs.verdict != Verdict::kOk) return;
    rows.alone().compare_with(engine.rules().agreement, pairs.calls, timing);
    if (!timing.baseline_agrees) compare_in_turns(rows, arm, timing, pairs);
  }

  // That the intervals of both sides took: the GPU may have waited for the host in them.
  void note_timed(const Timing& timing, int baseline_calls) {
    for (const std::int64_t each : timing.pairs.baseline_ns)
      harness.clock().add_timed(static_cast<double>(each) * baseline_calls);
    for (const std::int64_t each : timing.pairs.candidate_ns)
      harness.clock().add_timed(static_cast<double>(each) * timing.calls);
  }

  // A host's processors grow slower and faster by a quarter within seconds: what was alone a second ago may
  // differ from what is beside the candidate now for that alone.
  void compare_in_turns(HostRows& rows, ExtensionArm& arm, Timing& timing, const PairSettings& pairs) const {
    const Turns turns = time_in_turns(rows.baseline(), arm, {pairs.calls, timing.calls}, pace().turns,
                                      pace().turn_rounds, pairs.key);
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
                      double call_overhead_ns, double baseline_launch_ns, Timing& timing) {
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
                           .outside_ns = overhead_here().outside_ns};
    timing.event_ns = clocks.events_ns / timing.calls;
    timing.clock_facts.merge(std::map<std::string, std::string>{
        {"clock", "the host's, over rows of calls and device-wide synchronisation"},
        {"baseline", interpreter ? "eager in a python3 of its own" : "eager in this process"},
        {"candidate_clock_ns", fmt::format("{:.0f}", clocks.ours_ns / timing.calls)},
        {"late_ns", fmt::format("{:.0f}", clocks.late_ns)},
        {"candidate_spent_s", arm.spent()},
        {"call_overhead_ns", fmt::format("{:.0f}", call_overhead_ns)},
        {"context_launch_ns",
         fmt::format("{:.0f}; baseline's {:.0f}, the least seen {:.0f}", candidate.session().launch_ns(),
                     baseline_launch_ns, least_launch_ns)},
        {"armed_ns", fmt::format("{:.0f}", clocks.armed_ns)},
        {"values_ns",
         fmt::format("{:.0f}, {:.0f} without the candidate", clocks.values_ns, facts.values_alone_ns)},
        {"empty_interval_ns", fmt::format("{:.0f}; ready {:.0f}, a look {:.0f}", overhead_here().interval_ns,
                                          overhead_here().arm_ns, overhead_here().look_ns)},
        {"threads", fmt::format("{} before, {} after", facts.threads_before, facts.threads_after)},
        {"processor", options.cpu < 0 ? "any" : fmt::format("{}, for both sides", options.cpu)}});
    std::string detail;
    if (const std::string kind = hack_of(facts, &detail); !kind.empty()) write_hack(kind, detail, timing);
  }

  static void write_hack(const std::string& kind, const std::string& detail, Timing& timing) {
    timing.pairs.verdict = Verdict::kHack;
    timing.pairs.detail = detail;
    timing.hack = kind;
    timing.beside_clock = kind == kBeforeClock || kind == kLateWork;
  }

  // Of one more call, the candidate's last: no score knows of it.
  void note_kernels(ExtensionArm& arm, Timing& timing) {
    std::vector<device::ExtensionKernel> kernels;
    const device::ExtensionRun run = arm.trace(&kernels);
    timing.own_share = own_kernels->share_of(kernels);
    timing.clock_facts["kernels"] =
        timing.own_share ? own_kernels->told(kernels)
                         : "not known: " + (run.detail.empty() ? "CUPTI tells none" : run.detail);
    end_phase("kernels");
  }

  // In this child, which ends with it.
  Timing time_once(GpuBench& task, std::unique_ptr<ExtensionCandidate> candidate, Measurement& m) {
    AtRest rest;
    Timing timing;
    try {
      timing = time_candidate(task, *candidate, m, &rest);
    } catch (const NotPython& e) {
      return failed_timing({Verdict::kUnsupported, e.what(), 0});
    }
    if (timing.pairs.verdict == Verdict::kOk && rest.arm && own_kernels) note_kernels(*rest.arm, timing);
    candidate.reset();
    end_phase("end");
    if (timing.pairs.verdict != Verdict::kOk || !rest.arm) return timing;
    // Now nothing of it is on the GPU any more.
    const StayOn here(options.cpu);
    const double gone_ns = values_alone(rows_of(task), timing.calls, settings.seed, 2);
    std::string busy = busy_while_stopped(rest.values_ns, gone_ns);
    if (busy.empty()) busy = charge_for_looks(rest, timing);
    if (busy.empty()) return timing;
    rows_of(task).alone().forget();
    write_hack(kLateWork, busy, timing);
    return timing;
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

  // A right candidate, and the binary that a fresh child loads.
  struct ChildContender : Contender {
    ChildContender(State& the_state, GpuBench& the_task, std::unique_ptr<ExtensionCandidate> the_checked,
                   const fs::path& the_binary)
        : state(the_state), task(the_task), checked(std::move(the_checked)), binary(the_binary) {}
    Timing time(Measurement& m) override { return state.time_once(task, std::move(checked), m); }
    Timing time_afresh(Measurement& m) override {
      Ran loaded;
      std::unique_ptr<ExtensionCandidate> fresh = state.start(task, binary, &loaded);
      return loaded.verdict == Verdict::kOk ? state.time_once(task, std::move(fresh), m)
                                            : failed_timing(loaded);
    }
    State& state;
    GpuBench& task;
    std::unique_ptr<ExtensionCandidate> checked;
    const fs::path& binary;
  };

  // Of one whose process died at another shape; `candidate` becomes a new one.
  bool is_right_at_timing(GpuBench& task, const fs::path& binary,
                          std::unique_ptr<ExtensionCandidate>* candidate) {
    Ran loaded;
    try {
      *candidate = start(task, binary, &loaded);
    } catch (const device::GpuError&) {
      throw;
    } catch (const Error&) {  // no second child, so nothing is known of it
      return false;
    }
    if (loaded.verdict != Verdict::kOk) return false;
    const CheckOutcome own =
        check_candidate(**candidate, task.task(), task.oracle(), cases_at_timing_shapes(task.cases()));
    return own.verdict == Verdict::kOk && own.decided > 0;
  }

  // What `binary` holds: checks, then times.
  void measure(GpuBench& task, const fs::path& binary, Measured& out) {
    Measurement& m = out.measurement;
    Ran loaded;
    begin_phases();
    std::unique_ptr<ExtensionCandidate> candidate = start(task, binary, &loaded);
    m.verdict = loaded.verdict;
    m.detail = loaded.detail;
    if (loaded.verdict != Verdict::kOk) return;
    CheckOutcome checked = check_candidate(*candidate, task.task(), task.oracle(), task.cases());
    const bool is_module = !task.task().module.empty();
    if (is_module && checked.died_at_hidden && is_right_at_timing(task, binary, &candidate)) {
      checked.only_hidden = true;
      checked.detail += kRightAtTimingShapes;
    }
    const bool right = write_checks(checked, task.task(), task.oracle(), task.cases(), m);
    end_phase("checks");
    phases += fmt::format(" (its calls {:.2f})", checked.calls_s);
    const bool one_shape = is_module && checked.only_hidden && candidate->alive();
    if (!settings.timing || !(right || one_shape)) return;
    ChildContender contender(*this, task, std::move(candidate), binary);
    const double best = settings.best[m.task];
    engine.measure(contender, out);
    end_phase("rest");
    if (!one_shape) return;
    settings.best[m.task] = best;  // of those that are right
    if (m.verdict != Verdict::kOk) drop_score(out);
    if (m.verdict == Verdict::kHack || m.verdict == Verdict::kSandboxViolation) return;
    m.verdict = checked.verdict;
    m.detail = checked.detail;
  }

  GpuHarness& harness;
  Settings& settings;
  EngineDevice& engine_device;
  Settings by_host;  // the same by the host's clock
  Engine engine;
  process::SandboxLevel level;
  std::optional<Processor> processor;
  device::ExtensionOptions options;
  std::optional<ExtensionOverhead> overheads[2];  // overhead_of_kind()
  double least_launch_ns = 0;                     // in the contexts of children so far
  std::optional<TemporaryFolder> kept;            // of compile_at_first_run()
  std::optional<TemporaryFolder> references;      // reference_file()
  // Children that were started before anybody held the GPU's lock, by what they will load.
  std::multimap<fs::path, device::ExtensionSession> waiting;
  // Of the candidate that is measured.
  std::optional<device::ExtensionInterpreter> interpreter;
  bool libraries = false;
  std::optional<OwnKernels> own_kernels;  // of its sources; nothing: it is a reference
  std::string phases;                     // "start 0.61, checks 0.30, …", in seconds
  double phase_begin = 0;
};

ExtensionMeasurer::ExtensionMeasurer(GpuHarness& harness, Settings& settings, EngineDevice& device)
    : state_(std::make_unique<State>(harness, settings, device)) {}
ExtensionMeasurer::~ExtensionMeasurer() = default;

Ran ExtensionMeasurer::compile_at_first_run(const task::Task& task, const Candidate& candidate,
                                            const fs::path& binary) {
  State& s = *state_;
  s.kept.reset();
  if (candidate.tier != Tier::kPython) return {};
  const bool inductor = mentions_torch_compile(candidate);
  if (!inductor && !mentions(candidate, "triton")) return {};
  device::ExtensionOptions o = s.options;
  o.binary = binary;
  o.interpreter = State::interpreter_for(task::under_math(task, s.settings.math));
  if (!o.interpreter) return {};
  if (s.level != process::SandboxLevel::kNone && !process::keeps_signals_inside(s.level))
    return {Verdict::kUnsupported,
            "the sandbox of this machine does not keep signals inside, and compilers are processes", 0};
  s.kept.emplace("kept");
  if (inductor) fs::create_directory(s.kept->path() / "inductor");  // src/python/candidate.py looks for it
  o.interpreter->kept = s.kept->path();
  o.interpreter->may_compile = true;
  o.arena_bytes = task.memory_bytes + (inductor ? kTrialBytes : 0);
  o.first_call_s = kCompileSeconds;
  o.call_timeout_s = s.settings.call_timeout_s;
  ExtensionCandidate first(s.harness, task, device::ExtensionSession(o));
  Ran ran = first.load();
  const double until = seconds_now() + kCompileSeconds;
  std::vector<task::Dims> shapes = task.timing;
  shapes.insert(shapes.end(), task.hidden.begin(), task.hidden.end());
  const Reference reference(task, Place::kGpu);  // for its `prepare`
  for (std::size_t i = 0; i < shapes.size() && ran.verdict == Verdict::kOk; ++i) {
    const std::unique_ptr<GpuOperands> operands = first.lay_out(shapes[i], 1, &ran);
    if (ran.verdict != Verdict::kOk) break;
    GpuInputs inputs(reference, shapes[i]);
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

void ExtensionMeasurer::start_processes(const task::Task& task, const fs::path& binary, bool with_baseline) {
  State& s = *state_;
  s.waiting.clear();
  const task::Task measured = task::under_math(task, s.settings.math);
  s.interpreter = State::interpreter_for(measured);
  if (!s.interpreter) return;
  const auto start = [&](const fs::path& what, const fs::path& kept) {
    s.waiting.emplace(what, device::ExtensionSession(s.options_of(measured, what, kept)));
  };
  start(binary, s.kept ? s.kept->path() : fs::path());
  if (with_baseline) start(s.reference_file(measured, 1), {});
  for (auto& [what, session] : s.waiting) session.wait_until_loaded(kLoadSeconds);
}

void ExtensionMeasurer::open_contexts() {
  for (auto& [what, session] : state_->waiting) session.begin_open();
}

void ExtensionMeasurer::start_reference(const task::Task& task, int times, bool with_baseline) {
  start_processes(task, state_->reference_file(task::under_math(task, state_->settings.math), times),
                  with_baseline);
}

void ExtensionMeasurer::measure(GpuBench& task, const Candidate& source, const fs::path& binary,
                                Measured& out) {
  State& s = *state_;
  const struct Forget {
    State& state;
    ~Forget() {
      state.waiting.clear();
      state.kept.reset();
    }
  } forget{s};
  Measurement& m = out.measurement;
  m.device->sandbox = std::string(process::to_string(s.level));
  const bool of_python = source.tier == Tier::kPython;
  s.own_kernels.emplace(source);
  s.interpreter = of_python ? State::interpreter_for(task.task()) : std::nullopt;
  // torch may ask cuBLAS and cuDNN for any operator.
  s.libraries = of_python || !toolchain::read_extension_facts(binary).libraries.empty();
  if (of_python && !s.interpreter) {
    m.verdict = Verdict::kUnsupported;
    m.detail = "there is no python3 here, and candidates of tier `python` want one";
    return;
  }
  s.measure(task, binary, out);
  m.clock["held_s"] = s.phases;
}

void ExtensionMeasurer::measure_reference(GpuBench& task, int times, Measured& out) {
  State& s = *state_;
  Measurement& m = out.measurement;
  m.device->sandbox = std::string(process::to_string(s.level));
  s.own_kernels.reset();
  s.interpreter = State::interpreter_for(task.task());
  s.libraries = true;
  if (!s.interpreter) throw Error("there is no python3 here");
  s.measure(task, s.reference_file(task.task(), times), out);
  m.clock["held_s"] = s.phases;
}

}  // namespace warpsmith::measure

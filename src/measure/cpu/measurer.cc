#include "warpsmith/measure/measurer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "bench.h"
#include "engine/engine.h"
#include "race_check.h"
#include "timing/judge.h"
#include "timing/roofline.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/random.h"
#include "warpsmith/measure/baselines.h"
#include "warpsmith/measure/check.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/pairs.h"
#include "warpsmith/records/baseline.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr double kAgreement = 2.0;  // baseline in the pair against alone. A GPU's 3 % would blame candidates
                                    // for what caches and neighbours do to a CPU
constexpr int kMostTimings = 2;     // where the baseline disagrees
constexpr double kSlowest = 1000;   // times the reference: CUDA-L1's bound on what still counts as executable
constexpr double kLongIntervalNs = 4e6;   // of a candidate, while one call takes less
constexpr double kShortestTimeout = 1.0;  // seconds; a host may stall for that long

template <typename T>
T param(const Json& params, const char* key, T otherwise) {
  const auto it = params.find(key);
  if (it == params.end() || it->is_null()) return otherwise;
  try {
    return it->get<T>();
  } catch (const Json::exception& e) {
    throw Error(std::string("params: key `") + key + "`: " + e.what(), kExitUsage);
  }
}

// Processes of one candidate that are timed as one arm.
class Crew {
 public:
  Crew(CpuBench& task, double handshake_ns) : task_(task), handshake_ns_(handshake_ns) {}

  // Lays operands for `calls` calls out and warms up; the last warm run, or what went wrong. Of a process
  // that is referred to, it must outlive the crew.
  Arm::Run add(CandidateProcess& process, std::uint64_t key, int calls) {
    if (Arm::Run run = process.prepare(task_.timing_dims(), calls + 1); run.verdict != Verdict::kOk)
      return run;
    arms_.push_back(std::make_unique<CandidateArm>(process, task_.task(), task_.reference(), task_.source(),
                                                   task_.timed_bounds(), handshake_ns_));
    Arm::Run run;
    for (std::uint64_t warm = 0; warm < 2 && run.verdict == Verdict::kOk; ++warm) {
      arms_.back()->renew(random_key({key, name_key("estimate"), warm, arms_.size()}), calls);
      run = arms_.back()->run(calls);
    }
    return run;
  }
  Arm::Run add(const task::LaunchPlan& plan, const device::TwinOptions& options, std::uint64_t key,
               int calls) {
    processes_.push_back(std::make_unique<CandidateProcess>(task_.task(), plan, options));
    return add(*processes_.back(), key, calls);
  }
  int size() const { return static_cast<int>(arms_.size()); }
  Arm& arm() {
    std::vector<Arm*> all;
    for (const auto& arm : arms_) all.push_back(arm.get());
    return any_.emplace(std::move(all));
  }

 private:
  CpuBench& task_;
  double handshake_ns_;
  std::vector<std::unique_ptr<CandidateProcess>> processes_;
  std::vector<std::unique_ptr<CandidateArm>> arms_;
  std::optional<AnyOf> any_;
};

}  // namespace

Settings settings_from_json(const Json& params, std::uint64_t seed) {
  Settings s;
  s.device_kind = param(params, "device_kind", s.device_kind);
  if (s.device_kind != "cpu")
    s.device_names = param(params, "device_names", std::vector<std::string>{s.device_kind});
  s.baseline = param(params, "baseline", s.baseline);
  s.baselines = param(params, "baselines", s.baselines);
  s.math = param(params, "math", s.math);
  s.threads = param(params, "threads", s.threads);
  s.protocol.buckets = param(params, "buckets", s.protocol.buckets);
  s.protocol.rounds_a_bucket = param(params, "rounds_a_bucket", s.protocol.rounds_a_bucket);
  s.protocol.target = param(params, "target", 0.0);
  if (s.protocol.target == 0) s.protocol.target = s.device_kind == "cpu" ? kTargetOnCpu : kTargetOnGpu;
  s.protocol.variance_gate = param(params, "variance_gate", s.protocol.variance_gate);
  s.protocol.give_up_below = param(params, "give_up_below", s.device_kind == "cpu" ? 0.0 : kGiveUpBelow);
  if (s.device_kind != "cpu") {
    s.protocol.stop_at = kStopAtOnGpu;
    s.protocol.fine_rounds = kFineRoundsOnGpu;
  }
  s.budget_s = param(params, "budget_s", s.budget_s);
  s.check_seeds = param(params, "check_seeds", s.check_seeds);
  s.call_timeout_s = param(params, "call_timeout_s", s.call_timeout_s);
  s.memory_bytes = param(params, "memory_bytes", s.memory_bytes);
  s.remeasure_above = param(params, "remeasure_above", s.remeasure_above);
  s.remeasure_over_best = param(params, "remeasure_over_best", s.remeasure_over_best);
  s.best = param(params, "best", s.best);
  s.unsandboxed = param(params, "unsandboxed", s.unsandboxed);
  s.timing = param(params, "timing", s.timing);
  s.seed = seed;
  const auto refuse = [](const std::string& what) { throw Error("params: " + what, kExitUsage); };
  const auto& known = known_baselines();
  for (const std::string& name : s.baselines)
    if (std::find(known.begin(), known.end(), name) == known.end())
      refuse("baselines: `" + name + "` is not known");
  if (s.device_kind == "cpu" && s.baseline != "eager")
    refuse("baseline `" + s.baseline + "`: only `eager` is measured on the CPU");
  if (std::find(known.begin(), known.end(), s.baseline) == known.end())
    refuse("baseline `" + s.baseline + "` is not known");
  std::erase_if(s.baselines,
                [&](const std::string& name) { return s.device_kind == "cpu" && name == "eager"; });
  if (s.device_kind == "cpu" && !s.baselines.empty())
    refuse("baselines: `" + s.baselines.front() + "`: only `eager` is measured on the CPU");
  if (s.baseline != "eager" &&
      std::find(s.baselines.begin(), s.baselines.end(), s.baseline) == s.baselines.end())
    s.baselines.push_back(s.baseline);
  if (s.math != "strict" && s.math != "torch_default")
    refuse("math `" + s.math + "` is neither strict nor torch_default");
  if (s.threads < 1) refuse("threads must be at least 1");
  if (s.check_seeds < 1) refuse("check_seeds must be at least 1");
  if (!(s.budget_s > 0)) refuse("budget_s must be positive");
  if (!(s.call_timeout_s > 0)) refuse("call_timeout_s must be positive");
  try {
    stats::check(s.protocol);
  } catch (const std::invalid_argument& e) {
    refuse(e.what());
  }
  return s;
}

struct Measurer::State : EngineDevice {
  explicit State(Settings the_settings)
      : settings(std::move(the_settings)),
        facts(cpu_facts()),
        engine(settings, settings, *this,
               {.agreement = kAgreement, .most_timings = kMostTimings, .compulsory = "move"}) {
    configure_torch(settings.threads);
    sandbox = process::available_sandbox();
    if (sandbox == process::SandboxLevel::kNone && !settings.unsandboxed)
      throw Error(
          "no sandbox is to be had here, so candidates are not run; `--unsandboxed` runs them all the same");
    facts.threads = settings.threads;
    facts.sandbox = process::to_string(sandbox);
    facts.extra = torch_facts();
    facts.extra["caches"] = cache_state();
    ceiling = bandwidth_ceiling(settings.threads);
    facts.extra["bandwidth_ceiling_gb_s"] = fmt::format("{:.0f}", ceiling / 1e9);
    if (!settings.timing) return;
    const FileLock lock(timing_lock_path());
    take_handshake();
  }

  // Too short an answer lengthens a candidate's time a little; too long a one would make it look faster than
  // it is.
  void take_handshake() {
    constexpr int kBursts = 3;
    if (!empty || !empty->alive()) {
      device::TwinOptions options;
      options.threads = settings.threads;
      options.sandbox = sandbox;
      empty.emplace(options);
    }
    for (int i = 0; i < kBursts; ++i) handshake_ns = std::min(handshake_ns, empty->run_ns());
    facts.extra["handshake_ns"] = fmt::format("{:.0f}", handshake_ns);
  }

  CpuBench& bench_of(const task::Task& task) {
    return bench_for(bench, task, [&] { return std::make_unique<CpuBench>(task, source, settings); });
  }

  device::TwinOptions twin_options(const CpuBench& task, const std::filesystem::path& binary) const {
    device::TwinOptions options;
    options.binary = binary;
    options.threads = settings.threads;
    const double slowest = kSlowest * task.baseline_call_ns() * 1e-9;
    options.call_timeout_s = std::min(settings.call_timeout_s, std::max(kShortestTimeout, slowest));
    options.memory_bytes = settings.memory_bytes;
    options.sandbox = sandbox;
    return options;
  }

  PairSettings pair_settings(const CpuBench& task, const std::string& candidate, int attempt) const {
    return measure::pair_settings(settings, task.task().id, candidate, attempt);
  }
  Measurement blank(const CpuBench& task, const std::string& candidate) const {
    Measurement m = blank_measurement(settings, task.task(), candidate);
    m.device = facts;
    m.device->load_before = load_average();
    return m;
  }

  // The ceiling may have been measured while the host was slow, and a candidate is not to be blamed for that:
  // where one is faster, the ceiling is measured again, and the highest counts.
  double floor_ns(double candidate_ns) override {
    constexpr int kTries = 10;
    const double bytes = compulsory_bytes(bench->task(), bench->timing_dims());
    for (int i = 0; i < kTries && candidate_ns < bytes / ceiling * 1e9; ++i)
      ceiling = std::max(ceiling, bandwidth_ceiling(settings.threads));
    return bytes / ceiling * 1e9;
  }
  void write_roofline(Measurement& m) override {
    measure::write_roofline(roofline_of(bench->task(), bench->timing_dims(), {.bytes_s = ceiling}), m);
  }

  // A right candidate on the CPU twin. The host's lock is held while it lives.
  class TwinContender : public Contender {
   public:
    TwinContender(State& state, CpuBench& task, const task::LaunchPlan& plan,
                  const device::TwinOptions& options, CandidateProcess& checked)
        : state_(state), task_(task), plan_(plan), options_(options), checked_(checked) {}

    Timing time(Measurement& m) override { return time_in(checked_, m); }
    Timing time_afresh(Measurement& m) override {
      CandidateProcess fresh(task_.task(), plan_, options_);
      return time_in(fresh, m);
    }

   private:
    Timing time_in(CandidateProcess& process, Measurement& m) {
      state_.take_handshake();
      Crew crew(task_, state_.handshake_ns);
      PairSettings pairs = state_.pair_settings(task_, m.candidate, m.remeasured);
      int calls = task_.calls();
      Arm::Run run = crew.add(process, pairs.key, calls);
      if (run.verdict != Verdict::kOk) return failed_timing(run);
      // A slow one gets fewer, so that there are rounds enough (fewer calls need no other layout).
      const double call_ns = std::max(1.0, static_cast<double>(run.elapsed_ns) / calls);
      calls = std::clamp(static_cast<int>(kLongIntervalNs / call_ns), 1, calls);
      pairs.calls = calls;
      while (crew.size() < kPlacements)
        if (run = crew.add(plan_, options_, pairs.key, calls); run.verdict != Verdict::kOk)
          return failed_timing(run);
      task_.alone().times(calls);
      Timing timing = state_.engine.time(task_.baseline(calls), crew.arm(), pairs, m);
      if (timing.pairs.verdict == Verdict::kOk)
        task_.alone().compare_with(state_.engine.rules().agreement, calls, timing);
      return timing;
    }

    State& state_;
    CpuBench& task_;
    const task::LaunchPlan& plan_;
    const device::TwinOptions& options_;
    CandidateProcess& checked_;
  };

  Settings settings;
  ValueSource source;
  DeviceFacts facts;
  Engine engine;
  process::SandboxLevel sandbox = process::SandboxLevel::kNone;
  double ceiling = 0;  // bytes a second
  std::optional<device::EmptyTwin> empty;
  double handshake_ns =
      std::numeric_limits<double>::infinity();  // in the time of each run of a candidate; taken off
  std::unique_ptr<CpuBench> bench;
};

Measurer::Measurer(Settings settings) : state_(std::make_unique<State>(std::move(settings))) {}
Measurer::~Measurer() = default;

Measured Measurer::measure(const task::Task& task, const Candidate& candidate,
                           const std::filesystem::path& binary) {
  const double begin = seconds_now();
  CpuBench& bench = state_->bench_of(task);
  Measured out{state_->blank(bench, candidate.id), {}};
  Measurement& m = out.measurement;
  const auto done = [&] {
    m.device->load_after = load_average();
    m.seconds = seconds_now() - begin;
    return std::move(out);
  };
  if (candidate.tier != Tier::kPlan) {
    m.verdict = Verdict::kUnsupported;
    m.detail = "candidates of tier `" + std::string(to_string(candidate.tier)) + "` do not run on the CPU";
    return done();
  }
  const std::optional<task::LaunchPlan> plan = plan_of(candidate, bench.task(), m);
  if (!plan) return done();
  const device::TwinOptions options = state_->twin_options(bench, binary);
  CandidateProcess process(bench.task(), *plan, options);
  CheckOutcome checks = check_candidate(process, bench.task(), bench.oracle(), bench.cases());
  if (checks.verdict == Verdict::kOk && checks.decided > 0) {
    device::TwinOptions patient = options;
    patient.call_timeout_s = state_->settings.call_timeout_s;
    checks = check_for_races(bench.task(), *plan, patient, bench.oracle(), bench.cases(), checks);
  }
  if (write_checks(checks, bench.task(), bench.oracle(), bench.cases(), m) && state_->settings.timing) {
    const FileLock lock(timing_lock_path());
    m.device->load_before = load_average();
    State::TwinContender contender(*state_, bench, *plan, options, process);
    state_->engine.measure(contender, out);
  }
  return done();
}

Measured Measurer::measure_reference_against_itself(const task::Task& task) {
  const double begin = seconds_now();
  CpuBench& bench = state_->bench_of(task);
  Measured out{state_->blank(bench, "reference of " + task.id), {}};
  const FileLock lock(timing_lock_path());
  PairSettings pairs = state_->pair_settings(bench, out.measurement.candidate, 0);
  pairs.calls = bench.calls();
  BaselineArm other(bench.task(), bench.reference(), bench.source(), bench.timing_dims(), pairs.calls);
  Measurement& m = out.measurement;
  state_->engine.accept(state_->engine.time(bench.baseline(pairs.calls), other, pairs, m), out);
  out.measurement.device->load_after = load_average();
  out.measurement.seconds = seconds_now() - begin;
  return out;
}

Measured Measurer::measure_candidate_against_itself(const task::Task& task, const Candidate& candidate,
                                                    const std::filesystem::path& binary) {
  const double begin = seconds_now();
  CpuBench& bench = state_->bench_of(task);
  Measured out{state_->blank(bench, candidate.id), {}};
  const std::optional<task::LaunchPlan> plan = plan_of(candidate, bench.task(), out.measurement);
  if (!plan) return out;
  const device::TwinOptions options = state_->twin_options(bench, binary);
  const FileLock lock(timing_lock_path());
  // Settles the number of calls, which the pair against the reference would use.
  const Timing timing = [&] {
    CandidateProcess settling(bench.task(), *plan, options);
    return State::TwinContender(*state_, bench, *plan, options, settling).time(out.measurement);
  }();
  if (timing.pairs.verdict != Verdict::kOk) {
    state_->engine.accept(timing, out);
    return out;
  }
  Crew first(bench, state_->handshake_ns), second(bench, state_->handshake_ns);
  for (int i = 0; i < kPlacements; ++i)  // in turn: neither has the older processes
    for (Crew* crew : {&first, &second})
      if (const Arm::Run run = crew->add(*plan, options, static_cast<std::uint64_t>(i), timing.calls);
          run.verdict != Verdict::kOk)
        throw Error("a candidate that ran does not run again: " + run.detail);
  PairSettings pairs = state_->pair_settings(bench, candidate.id, 1);
  pairs.calls = timing.calls;
  state_->engine.accept(state_->engine.time(first.arm(), second.arm(), pairs, out.measurement), out);
  out.measurement.device->load_after = load_average();
  out.measurement.seconds = seconds_now() - begin;
  return out;
}

}  // namespace warpsmith::measure

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "arms.h"
#include "bench.h"
#include "candidate.h"
#include "context.h"
#include "engine/engine.h"
#include "extension/measurer.h"
#include "extension/refused.h"
#include "gpu_place.h"
#include "harness.h"
#include "probe/probe.h"
#include "timing/judge.h"
#include "timing/roofline.h"
#include "turn.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/random.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/measure/check.h"
#include "warpsmith/measure/gpu.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/module_state.h"
#include "warpsmith/process/gpu_neighbours.h"
#include "warpsmith/process/gpu_watch.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/stats/summary.h"
#include "warpsmith/toolchain/extension.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::measure {

namespace {

constexpr double kAgreement = 1.03;  // baseline in the pair against alone
constexpr const char* kHarnessMemory = "harness_memory";
constexpr const char* kChangedMemory = "memory of the harness that the candidate was never given has changed";
constexpr double kSlowest = 1000;  // times the reference: CUDA-L1's bound on what still counts as executable
constexpr double kShortestTimeout = 0.1;  // seconds
constexpr double kHostBound = 1.2;        // the baseline from an idle GPU against queued

device::GpuNames names_of(const toolchain::CubinFacts& facts) {
  device::GpuNames names;
  for (const toolchain::KernelFacts& kernel : facts.kernels) {
    names.kernels[kernel.name] = kernel.lowered;
    if (kernel.parameters >= 0) names.parameters[kernel.name] = kernel.parameters;
  }
  for (const toolchain::SymbolFacts& symbol : facts.symbols) {
    names.symbols[symbol.name] = symbol.lowered;
    names.variables.push_back(symbol.lowered);
  }
  return names;
}

DeviceFacts facts_of(const Settings& settings, const device::GpuFacts& gpu) {
  DeviceFacts facts;
  facts.kind = settings.device_kind;
  facts.name = gpu.name;
  facts.uuid = gpu.uuid;
  facts.driver = gpu.driver;
  facts.host = process::host_name();
  facts.threads = settings.threads;
  facts.sandbox = "none: no host code of a candidate runs";
  facts.extra = torch_facts();
  facts.extra["compute_capability"] = fmt::format("{}.{}", gpu.major, gpu.minor);
  facts.extra["sms"] = std::to_string(gpu.sms);
  facts.extra["l2_bytes"] = std::to_string(gpu.l2_bytes);
  facts.extra["memory_bytes"] = std::to_string(gpu.memory_bytes);
  facts.extra["caches"] = "L2 flushed before each row of calls";
  return facts;
}

const device::Gpu& right_gpu(const device::Gpu& opened, const Settings& settings) {
  require_gpu(settings, opened.facts().name);
  return opened;
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  std::vector<std::byte> bytes(text.size());
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(bytes.data()));
  return bytes;
}

}  // namespace

struct GpuMeasurer::State : EngineDevice {
  State(Settings the_settings, std::span<const std::byte> cubin)
      : settings(std::move(the_settings)),
        engine(settings, settings, *this, {.agreement = kAgreement}),
        launch_cost(settings.timing ? open_quick_context(settings, cubin) : LaunchCost()),
        harness(right_gpu(gpu, settings), cubin, source) {
    configure_torch(settings.threads);
    facts = facts_of(settings, gpu.facts());
    std::string problem;
    watch = process::GpuWatch::open(facts.uuid, &problem);
    if (watch) {
      for (const auto& [name, value] : watch->settings()) facts.extra["nvml_" + name] = value;
      neighbours.emplace(*watch);
      facts.extra["other_processes"] = neighbours->can_tell() ? "watched" : "not told by the driver";
    } else {
      facts.extra["nvml"] = "not to be had: " + problem;
    }
  }

  // What this GPU can do at most: once a run and GPU it is measured, in 1 to 3 s, by who times. The caller
  // holds the GPU's lock.
  void know_ceilings() {
    if (ceilings) return;
    if (!settings.ceilings.empty()) {
      std::string problem;
      ceilings = read_ceilings(ceilings_path(settings.ceilings, facts.uuid), &problem);
      if (!problem.empty()) log_warning(problem + "; measured anew");
      if (ceilings && (ceilings->uuid != facts.uuid || ceilings->driver != facts.driver ||
                       !ceilings->find(kReadBandwidth)))
        ceilings.reset();
      if (ceilings && ceilings->kind.empty()) {  // by warpsmith-probe, which knows no site
        ceilings->kind = settings.device_kind;
        keep_ceilings();
      }
    }
    if (!ceilings) {
      if (!settings.timing) return;
      ceilings = probe_gpu(harness, watch ? &*watch : nullptr, false);
      ceilings->kind = settings.device_kind;
      log_info(facts.name + ": " + ceilings_line(*ceilings));
      keep_ceilings();
    }
    facts.extra["ceilings"] = ceilings_line(*ceilings);
  }

  void keep_ceilings() const {
    if (!settings.ceilings.empty()) write_ceilings(ceilings_path(settings.ceilings, facts.uuid), *ceilings);
  }

  // Of its compulsory reads (roofline.h). The bandwidth may have been measured while the GPU was slow, and a
  // candidate is not to be blamed for that: where one is faster it is measured again, and the highest counts.
  double floor_ns(double candidate_ns) override {
    constexpr int kTries = 3;
    const GpuBench& task = *bench;
    const auto floor = [&] {
      const CeilingFigure* reading = ceilings ? ceilings->find(kReadBandwidth) : nullptr;
      return reading == nullptr ? 0 : read_floor_ns(task.task(), task.timing_dims(), reading->high);
    };
    try {
      for (int i = 0; i < kTries && candidate_ns < floor(); ++i)
        if (CeilingFigure again = probe_reading(harness); again.high > ceilings->find(kReadBandwidth)->high) {
          ceilings->figures[kReadBandwidth] = std::move(again);
          keep_ceilings();
        }
    } catch (const device::GpuError& e) {
      if (e.outcome().context_lost) throw;
      throw Error(e.what());  // no memory left for it: not the candidate's
    }
    return floor();
  }

  // What NVML says of the GPU's clocks is noted.
  void watch_rounds(PairSettings& pairs) override { pairs.disturbed = slowed_down(watch, &seen_reasons); }
  void begin_to_watch_others() override {
    if (neighbours) neighbours->begin();
  }
  std::string others_seen() override { return neighbours ? neighbours->seen() : ""; }
  std::optional<GpuState> state_now() override {
    return watch ? std::optional(state_of(watch->read())) : std::nullopt;
  }

  // As candidates of tier `python` meet the task. Without the GPU's lock: Python makes the module.
  task::Task as_module(const task::Task& task) {
    task::Task module = task::as_module(task);
    if (module.state.empty()) return module;
    if (settings.module_states.empty()) {
      own_states.emplace("states");
      settings.module_states = own_states->path();
    }
    module.state_file = module_state(module, settings.module_states, settings.unsandboxed);
    return module;
  }

  GpuBench& bench_of(const task::Task& task) {
    return bench_for(bench, task, [&] { return std::make_unique<GpuBench>(harness, task, settings); });
  }

  // What the task before had of the GPU, while this one is made ready: others need it.
  void drop_bench() {
    if (!bench) return;
    const InTurn in_turn(*this);
    bench.reset();
    release_cached_gpu_memory();
    harness.memory().drop_spare();
  }

  Measurement blank(const task::Task& task, const std::string& candidate) const {
    Measurement m = blank_measurement(settings, task, candidate);
    m.device = facts;
    m.device->load_before = load_average();
    return m;
  }

  double call_timeout_s(const GpuBench& task) const {
    const double slowest = kSlowest * task.baseline_call_ns() * 1e-9;
    return std::min(settings.call_timeout_s, std::max(kShortestTimeout, slowest));
  }

  // Rows as long as the baseline's.
  static RowEstimate row_of(GpuCandidateArm& arm, const GpuBench& task, std::uint64_t key) {
    return estimate_row(
        arm, [&] { return arm.enqueue_ns(); }, task.row_ns(), arm.most_calls(), key);
  }

  // A right candidate of tier `plan`. In another process it is timed afresh: by GpuWorkers.
  struct PlanContender : Contender {
    PlanContender(State& the_state, GpuBench& the_task, GpuCandidate& the_candidate)
        : state(the_state), task(the_task), candidate(the_candidate) {}
    Timing time(Measurement& m) override { return state.time_candidate(task, candidate, m); }
    Timing time_afresh(Measurement&) override { throw Error("this process has run the candidate"); }
    State& state;
    GpuBench& task;
    GpuCandidate& candidate;
  };

  Timing time_candidate(GpuBench& task, GpuCandidate& candidate, Measurement& m) {
    PairSettings pairs = pair_settings(settings, m.task, m.candidate, m.remeasured);
    GpuCandidateArm arm(candidate, task.reference(), task.timed_bounds(), task.timing_dims());
    if (!arm.outcome().ok()) return failed_timing(candidate.ran(arm.outcome()));
    pairs.calls = task.calls();
    const RowEstimate row = row_of(arm, task, pairs.key);
    if (row.failed.verdict != Verdict::kOk) return failed_timing(row.failed);
    pairs.candidate_calls = row.calls;
    Timing timing = engine.time(task.baseline(), arm, pairs, m);
    if (timing.pairs.verdict != Verdict::kOk) return timing;
    if (!arm.tables_are_whole()) {
      timing = failed_timing({Verdict::kHack, kChangedMemory, 0});
      timing.hack = kHarnessMemory;
      return timing;
    }
    task.alone().compare_with(engine.rules().agreement, task.calls(), timing);
    note_host_bound(task, m);
    task.baseline().remember();  // from here on the candidate alone runs
    if (const device::GpuOutcome outcome = compare_clocks(arm, timing, m); !outcome.ok())
      return failed_timing(candidate.ran(outcome));
    if (const Ran ran = note_idle_times(arm, m); ran.verdict != Verdict::kOk) return failed_timing(ran);
    return timing;
  }

  // By a row from an idle GPU; a host that was busy for a moment gets three tries. Not ok: the candidate's
  // verdict.
  device::GpuOutcome compare_clocks(GpuCandidateArm& arm, Timing& timing, const Measurement& m) const {
    constexpr int kTries = 3;
    for (int i = 0; i < kTries; ++i) {
      arm.renew(random_key({name_key("clocks"), name_key(m.candidate), static_cast<std::uint64_t>(i)}),
                timing.calls);
      const GpuTimes times = arm.row_from_idle(timing.calls);
      if (!times.outcome.ok()) return times.outcome;
      timing.clocks = clocks_disagree(times.queued_ns, times.host_ns);
      if (timing.clocks.empty()) break;
    }
    return {};
  }

  static Ran note_idle_times(GpuCandidateArm& arm, Measurement& m) {
    constexpr int kIdleCalls = 5;
    std::vector<double> times;
    for (int i = 0; i < kIdleCalls; ++i) {
      arm.renew(random_key({name_key("idle"), name_key(m.candidate), static_cast<std::uint64_t>(i)}), 1);
      const Ran run = arm.run_idle();
      if (run.verdict != Verdict::kOk) return run;
      times.push_back(static_cast<double>(run.elapsed_ns));
    }
    m.candidate_idle_ns = stats::median(times);
    return {};
  }

  static void note_host_bound(GpuBench& task, Measurement& m) {
    m.baseline_idle_ns = task.idle_ns();
    m.host_bound = task.is_paced_by_host() || task.idle_ns() > kHostBound * task.alone_ns();
  }

  void write_roofline(Measurement& m) override {
    if (ceilings)
      measure::write_roofline(
          roofline_of(bench->task(), bench->timing_dims(), speeds_of(*ceilings, bench->task().math)), m);
  }

  // What a candidate has written to that is not its own may be anybody's: the next one gets a fresh process.
  void look_for_damage(GpuBench& task, Measurement& m) {
    if (!harness.kernels().pools_are_whole() || !task.baseline_is_whole()) {
      m.verdict = Verdict::kHack;
      m.hack = kHarnessMemory;
      m.detail = std::string(kChangedMemory) + (m.detail.empty() ? "" : "; " + m.detail);
      lost = true;
    }
    lost = lost || m.verdict == Verdict::kOutOfBounds || m.verdict == Verdict::kInputModified ||
           m.verdict == Verdict::kHack;
  }

  void check_and_time(GpuBench& task, GpuCandidate& candidate, const Measurement* checked, Measured& out) {
    Measurement& m = out.measurement;
    if (checked != nullptr) {
      m.max_error = checked->max_error;
      m.error_bound = checked->error_bound;
      m.without_float64 = checked->without_float64;
    } else if (!write_checks(check_candidate(candidate, task.task(), task.oracle(), task.cases()),
                             task.task(), task.oracle(), task.cases(), m)) {
      return;
    }
    if (!settings.timing) return;
    seen_reasons.reset();
    PlanContender contender(*this, task, candidate);
    engine.measure(contender, out);
    if (seen_reasons) m.clock_reasons = process::clock_reason_words(*seen_reasons);
  }

  // Runs `work` on the bench of a task with the GPU's lock, and notes how long it took.
  template <typename Work>
  Measured null_test(const task::Task& task, const std::string& name, const Work& work) {
    const InTurn in_turn(*this);
    know_ceilings();
    if (extensions) extensions->open_contexts();
    GpuBench& task_bench = bench_of(task);
    Measured out{blank(task_bench.task(), name), {}, ""};
    work(task_bench, out);
    out.measurement.seconds = turn->held_s();
    return out;
  }

  // Has the GPU to itself for as long as this lives.
  struct InTurn {
    explicit InTurn(State& the_state) : state(the_state) {
      state.turn.emplace(gpu_lock_path(state.facts.uuid));
    }
    ~InTurn() { state.turn.reset(); }
    InTurn(const InTurn&) = delete;
    InTurn& operator=(const InTurn&) = delete;
    State& state;
  };

  void without_device(const std::function<void()>& work) override { turn ? turn->without(work) : work(); }

  ExtensionMeasurer& extension_measurer() {
    if (!extensions) extensions = std::make_unique<ExtensionMeasurer>(harness, settings, *this);
    return *extensions;
  }

  // What went wrong on the GPU is the candidate's; else it is thrown on.
  Ran blame(const device::GpuError& e) {
    if (e.outcome().context_lost) {
      lost = true;
      return {e.outcome().verdict, e.outcome().detail, 0};
    }
    if (e.outcome().verdict != Verdict::kOutOfMemory) throw e;
    return {Verdict::kOutOfMemory, e.what(), 0};
  }

  // What comes before a candidate's turn at the GPU.
  Ran prepare(const task::Task& task, const Candidate& candidate, const std::filesystem::path& binary) {
    if (candidate.tier == Tier::kPlan) return {};
    const std::string refused = host_code_refused(process::available_sandbox(), settings.unsandboxed);
    if (!refused.empty()) return {Verdict::kUnsupported, refused, 0};
    if (Ran ran = compile_at_first_run(task, candidate, binary); ran.verdict != Verdict::kOk) return ran;
    if (candidate.tier == Tier::kPython)
      extensions->start_processes(task, binary, !has_python_baseline(task));
    return {};
  }

  bool has_python_baseline(const task::Task& task) const {
    return is_bench_of(bench, task) && bench->has_host_rows(kPythonRows);
  }

  // Looks for the one from which launches are fastest, once.
  void claim_processor() {
    if (extensions) return;
    const InTurn in_turn(*this);
    extension_measurer();
  }

  // Without the GPU's lock: a compiler may run.
  Ran compile_at_first_run(const task::Task& task, const Candidate& candidate,
                           const std::filesystem::path& binary) {
    if (candidate.tier != Tier::kPython) return {};
    claim_processor();
    try {
      return extensions->compile_at_first_run(task, candidate, binary);
    } catch (const device::GpuError& e) {
      return blame(e);
    }
  }

  // The candidate's code runs in a child: nothing of this process is lost with it.
  void measure_extension(GpuBench& task, const Candidate& candidate, const std::filesystem::path& binary,
                         Measured& out) {
    Measurement& m = out.measurement;
    seen_reasons.reset();
    extension_measurer().measure(task, candidate, binary, out);
    if (seen_reasons) m.clock_reasons = process::clock_reason_words(*seen_reasons);
    if (m.rounds > 0) note_host_bound(task, m);
    lost = lost || !harness.kernels().pools_are_whole();
  }

  Settings settings;
  std::optional<TemporaryFolder> own_states;
  Engine engine;
  LaunchCost launch_cost;
  device::Gpu gpu;
  ValueSource source;
  GpuHarness harness;
  DeviceFacts facts;
  std::optional<process::GpuWatch> watch;  // nothing where there is no NVML
  std::optional<process::GpuNeighbours> neighbours;
  std::optional<std::uint64_t> seen_reasons;  // of clocks, during this measurement
  std::optional<Ceilings> ceilings;
  std::optional<GpuTurn> turn;
  bool lost = false;
  std::unique_ptr<GpuBench> bench;
  std::unique_ptr<ExtensionMeasurer> extensions;
};

GpuMeasurer::GpuMeasurer(Settings settings, std::span<const std::byte> cubin)
    : state_(std::make_unique<State>(std::move(settings), cubin)) {}
GpuMeasurer::~GpuMeasurer() = default;

bool GpuMeasurer::lost() const { return state_->lost; }

bool GpuMeasurer::crowded() const {
  const std::uint64_t all = state_->gpu.facts().memory_bytes;
  return state_->gpu.free_memory() < all - all / 4;
}

void GpuMeasurer::prepare() {
  const State::InTurn in_turn(*state_);
  state_->know_ceilings();
}

void GpuMeasurer::know_best(const std::string& task, double speedup) {
  state_->settings.best[task] = speedup;
}

Measured GpuMeasurer::measure(const task::Task& as_it_is, const Candidate& candidate,
                              const std::filesystem::path& binary, int attempt, const Measurement* checked) {
  const double begin = seconds_now();
  State& s = *state_;
  const task::Task task = candidate.tier == Tier::kPython ? s.as_module(as_it_is) : as_it_is;
  if (s.settings.shares_gpu && !is_bench_of(s.bench, task)) s.drop_bench();
  if (const Ran ran = s.prepare(task, candidate, binary); ran.verdict != Verdict::kOk) {
    Measured failed{s.blank(task::under_math(task, s.settings.math), candidate.id), {}, ""};
    failed.measurement.verdict = ran.verdict;
    failed.measurement.detail = ran.detail;
    failed.measurement.remeasured = attempt;
    failed.measurement.seconds = seconds_now() - begin;
    return failed;
  }
  const State::InTurn in_turn(s);
  s.know_ceilings();
  const double before_s = s.turn->held_s();
  if (candidate.tier == Tier::kPython) s.extensions->open_contexts();
  GpuBench& bench = s.bench_of(task);
  const double bench_s = s.turn->held_s() - before_s;
  Measured out{s.blank(bench.task(), candidate.id), {}, ""};
  Measurement& m = out.measurement;
  m.remeasured = attempt;
  const bool has_host_code = candidate.tier != Tier::kPlan;
  const std::optional<task::LaunchPlan> plan =
      has_host_code ? task::LaunchPlan() : plan_of(candidate, bench.task(), m);
  if (!plan) return out;
  const double timed_before = s.harness.clock().timed_ns();
  try {
    if (has_host_code) {
      static_cast<CodeFacts&>(m) = toolchain::read_extension_facts(binary).code;
      s.measure_extension(bench, candidate, binary, out);
      m.clock["held_s"] = fmt::format("task {:.2f}, {}", bench_s, m.clock["held_s"]);
    } else {
      const toolchain::CubinFacts facts = toolchain::read_cubin_facts(binary);
      static_cast<CodeFacts&>(m) = toolchain::facts_of(facts);
      GpuCandidate on_gpu(s.harness, bench.task(), *plan, read_bytes(binary), names_of(facts),
                          s.call_timeout_s(bench));
      s.check_and_time(bench, on_gpu, checked, out);
      if (m.rounds > 0) m.own_share = 1;  // a plan launches no others
      s.lost = s.lost || !on_gpu.alive();
      if (!s.lost) s.look_for_damage(bench, m);
    }
  } catch (const device::GpuError& e) {
    const Ran ran = s.blame(e);
    m.verdict = ran.verdict;
    m.detail = ran.detail;
    drop_score(out);
  }
  // What is certain is not measured again: a second verdict would take its place.
  if (s.lost || (m.verdict != Verdict::kOk && m.verdict != Verdict::kUnstable)) out.again.clear();
  m.device->load_after = load_average();
  m.gpu_held_s = s.turn->held_s() - before_s;
  m.gpu_timed_s = (s.harness.clock().timed_ns() - timed_before) * 1e-9;
  if (s.launch_cost.contexts > 0 && m.rounds > 0) m.clock["launch_ns"] = to_string(s.launch_cost);
  m.seconds = seconds_now() - begin;
  return out;
}

Measured GpuMeasurer::measure_reference_against_itself(const task::Task& task) {
  State& s = *state_;
  return s.null_test(task, "reference of " + task.id, [&](GpuBench& bench, Measured& out) {
    PairSettings pairs = pair_settings(s.settings, task.id, out.measurement.candidate, 0);
    pairs.calls = bench.calls();
    const std::unique_ptr<GpuBaselineArm> other = bench.another_baseline();
    Timing timing = s.engine.time(bench.baseline(), *other, pairs, out.measurement);
    if (timing.pairs.verdict == Verdict::kOk)
      bench.alone().compare_with(s.engine.rules().agreement, bench.calls(), timing);
    s.engine.accept(timing, out);
  });
}

Measured GpuMeasurer::measure_reference_as_python(const task::Task& task, int times) {
  State& s = *state_;
  const task::Task module = s.as_module(task);
  s.claim_processor();
  s.extension_measurer().start_reference(module, times, !s.has_python_baseline(module));
  return s.null_test(module, "reference of " + task.id, [&](GpuBench& bench, Measured& out) {
    s.extension_measurer().measure_reference(bench, times, out);
  });
}

Measured GpuMeasurer::measure_candidate_against_itself(const task::Task& task, const Candidate& candidate,
                                                       const std::filesystem::path& binary) {
  State& s = *state_;
  return s.null_test(task, candidate.id, [&](GpuBench& bench, Measured& out) {
    const std::optional<task::LaunchPlan> plan = plan_of(candidate, bench.task(), out.measurement);
    if (!plan) return;
    const std::vector<std::byte> cubin = read_bytes(binary);
    const device::GpuNames names = names_of(toolchain::read_cubin_facts(binary));
    GpuCandidate first(s.harness, bench.task(), *plan, cubin, names, s.call_timeout_s(bench));
    GpuCandidate second(s.harness, bench.task(), *plan, cubin, names, s.call_timeout_s(bench));
    GpuCandidateArm a(first, bench.reference(), bench.timed_bounds(), bench.timing_dims());
    GpuCandidateArm b(second, bench.reference(), bench.timed_bounds(), bench.timing_dims());
    PairSettings pairs = pair_settings(s.settings, task.id, candidate.id, 1);
    for (GpuCandidateArm* arm : {&a, &b})
      if (!arm->outcome().ok()) throw Error("no room for its operands: " + arm->outcome().detail);
    const RowEstimate row = State::row_of(a, bench, pairs.key),
                      other = State::row_of(b, bench, random_key({pairs.key, 1}));
    for (const RowEstimate* estimate : {&row, &other})
      if (estimate->failed.verdict != Verdict::kOk) throw Error(estimate->failed.detail);
    pairs.calls = row.calls;
    pairs.candidate_calls = other.calls;
    s.engine.accept(s.engine.time(a, b, pairs, out.measurement), out);
  });
}

}  // namespace warpsmith::measure

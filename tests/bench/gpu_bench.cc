// What measuring on a GPU gives and costs, on the first GPU that is seen.
//
//   gpu_bench [MODE [DATASETS]]    null where nothing is said; nothing where there is no GPU
//
//   null        programs timed against themselves, which must score 1: each
//               task's reference, and its first right candidate
//   spread      ten repeats of 20 candidates, each by a fresh process: standard
//               deviation of the log-speedup
//   throughput  500 candidates, of which 5 % loop or crash: seconds that the
//               GPU is held by each
//   python_eager  TorchScript's eager over Python's, in pairs: they must agree within
//               3 %; and a call of each in a process of its own
//   baselines   every baseline of every task against eager
//   all         the dataset's candidates once each: verdicts, speedups, idle times
//   checks      twenty checks (WARPSMITH_BENCH_TIMES) of each right candidate: that
//               all are passed, and how near to its bound each came
//   few         three rounds of each right candidate, in this process: for
//               compute-sanitizer (WARPSMITH_BENCH_A_TASK: of so many a task)
//
// Prints figures, and judges none of them: the exit code is 1 where verdicts are not what they should be
// (all, throughput, checks) or a right candidate was not timed (few). Candidates are compiled before anything
// is timed.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/measure/baselines.h"
#include "warpsmith/measure/gpu.h"
#include "warpsmith/measure/gpu_baselines.h"
#include "warpsmith/measure/gpu_workers.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/stats/summary.h"
#include "warpsmith/toolchain/gpu.h"

namespace {

using namespace warpsmith;
namespace fs = std::filesystem;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Entry {
  const task::Task* task = nullptr;
  std::string name, expected;
  Candidate candidate;
  toolchain::CompileResult compiled;
};

struct Bench {
  fs::path datasets, cache;
  std::vector<task::Task> tasks;
  std::vector<Entry> entries;
  std::string target;
  measure::Settings settings;
};

// Compiles on all cores; the threads are gone before anything forks.
void compile(Bench& bench) {
  const auto target = toolchain::parse_gpu_target(bench.target);
  toolchain::CompileOptions options;
  options.cache = bench.cache;
  options.unsandboxed = true;
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  const double begin = now();
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (std::size_t n = next++; n < bench.entries.size(); n = next++) {
        Entry& e = bench.entries[n];
        e.compiled = toolchain::compile_for_gpu(e.candidate, *e.task, *target, options);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("%zu candidates compiled for %s in %.1f s\n", bench.entries.size(), bench.target.c_str(),
              now() - begin);
}

Bench open_bench(const fs::path& datasets) {
  Bench bench;
  bench.datasets = fs::absolute(datasets);
  bench.cache = fs::temp_directory_path() / "warpsmith-gpu-bench";
  Diagnostics diagnostics;
  bench.tasks = task::load_tasks(bench.datasets, diagnostics);
  for (const task::Task& t : bench.tasks)
    for (const task::CandidateFile& file : task::load_candidate_files(t, diagnostics))
      bench.entries.push_back({&t, file.name, file.expected, make_plan_candidate(t.id, file.source, {}), {}});
  if (!diagnostics.empty()) throw InvalidInput(diagnostics);
  bench.settings = measure::settings_from_json({{"device_kind", "gpu"},
                                                {"device_names", Json::array()},
                                                {"target", 0.005},
                                                {"budget_s", 2},
                                                {"unsandboxed", true}},
                                               0);
  bench.settings.ceilings = bench.cache / "ceilings";
  return bench;
}

void read_target(Bench& bench) {
  const char* target = std::getenv("WARPSMITH_BENCH_TARGET");
  bench.target = target != nullptr ? target : "sm_90a";
}

std::string number_of(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "?";
}

std::string line_of(const Measurement& m) {
  if (m.rounds == 0) return fmt::format("{} {}", to_string(m.verdict), m.detail);
  return fmt::format(
      "{} {:.4f} [{:.4f}, {:.4f}] {:.0f} (alone {}) / {:.0f} ns, {} rounds of {} ({} thrown away), held {} "
      "s, "
      "timed {} s, roofline {} ns ({}) {}",
      to_string(m.verdict), m.speedup, m.speedup_low, m.speedup_high, m.baseline_ns,
      number_of(m.baseline_alone_ns, 0), m.candidate_ns, m.rounds, m.batch, m.rounds_thrown_away,
      number_of(m.gpu_held_s, 4), number_of(m.gpu_timed_s, 4), number_of(m.roofline_ns, 0), m.roofline_bound,
      m.detail);
}

void print_gpu(const Measurement& m) {
  static bool printed = false;
  if (printed || !m.device) return;
  printed = true;
  std::printf("GPU: %s %s, driver %s\n", m.device->name.c_str(), m.device->uuid.c_str(),
              m.device->driver.c_str());
}

// The verdict that it must get.
std::string wanted_of(const Entry& e) { return e.expected == "wrong_hidden" ? "wrong_output" : e.expected; }

std::vector<const Entry*> good_ones(const Bench& bench) {
  std::vector<const Entry*> good;
  for (const Entry& e : bench.entries)
    if (e.expected == "ok" && e.compiled.verdict == Verdict::kOk) good.push_back(&e);
  return good;
}

void null_test(Bench& bench, measure::GpuMeasurer& measurer) {
  std::vector<double> references, candidates;
  for (const task::Task& t : bench.tasks) {
    const Measurement m = measurer.measure_reference_against_itself(t).measurement;
    print_gpu(m);
    std::printf("%-24s reference  %s\n", t.id.c_str(), line_of(m).c_str());
    references.push_back(m.rounds > 0 ? m.speedup : 0);
    for (const Entry* e : good_ones(bench)) {
      if (e->task->id != t.id) continue;
      const Measurement c =
          measurer.measure_candidate_against_itself(t, e->candidate, e->compiled.binary).measurement;
      std::printf("%-24s candidate  %s %s\n", t.id.c_str(), e->name.c_str(), line_of(c).c_str());
      candidates.push_back(c.rounds > 0 ? c.speedup : 0);
      break;
    }
    std::fflush(stdout);
  }
  const auto near = [](const std::vector<double>& scores) {
    return std::count_if(scores.begin(), scores.end(), [](double s) { return std::abs(s - 1) <= 0.01; });
  };
  std::printf("null test: references within 1.00 +- 0.01: %ld of %zu; candidates: %ld of %zu\n",
              near(references), references.size(), near(candidates), candidates.size());
}

struct Repeats {
  const Entry* entry = nullptr;
  std::vector<double> logs, widths;
  std::vector<double> baseline, own;  // logarithms of nanoseconds
  std::vector<int> mhz;
};

// WARPSMITH_BENCH_SAMPLES: a file that gets a line a measurement, its task and name, then the nanoseconds of
// each round, all of the baseline and all of the candidate.
void write_samples(const Entry& entry, const std::vector<std::int64_t>& samples) {
  const char* file = std::getenv("WARPSMITH_BENCH_SAMPLES");
  if (file == nullptr || *file == '\0') return;
  std::string line = entry.task->id + " " + entry.name;
  for (const std::int64_t each : samples) line += " " + std::to_string(each);
  std::ofstream(file, std::ios::app) << line << '\n';
}

// Each repeat by a fresh process, with values, order and places in memory of its own.
void spread(Bench& bench, measure::GpuWorkers& workers) {
  constexpr std::size_t kCandidates = 20, kRepeats = 10;
  std::vector<const Entry*> good = good_ones(bench);
  std::vector<Repeats> chosen;
  const std::size_t step = std::max<std::size_t>(1, good.size() / kCandidates);
  for (std::size_t i = 0; i < good.size() && chosen.size() < kCandidates; i += step)
    chosen.push_back({good[i], {}, {}});
  for (std::size_t repeat = 0; repeat < kRepeats; ++repeat) {
    workers.refresh();
    for (Repeats& r : chosen) {
      const measure::Measured measured =
          workers.measure_once(r.entry->candidate, r.entry->compiled.binary, static_cast<int>(repeat));
      const Measurement& m = measured.measurement;
      write_samples(*r.entry, measured.samples);
      print_gpu(m);
      if (m.rounds == 0) {
        std::printf("%s %s: %s\n", r.entry->task->id.c_str(), r.entry->name.c_str(), line_of(m).c_str());
        continue;
      }
      r.logs.push_back(std::log(m.speedup));
      r.widths.push_back(std::log(m.speedup_high / m.speedup));
      r.baseline.push_back(std::log(m.baseline_ns));
      r.own.push_back(std::log(m.candidate_ns));
      r.mhz.push_back(m.gpu_after && m.gpu_after->sm_clock_mhz ? *m.gpu_after->sm_clock_mhz : 0);
    }
    std::fflush(stdout);
  }
  std::vector<double> deviations;
  for (const Repeats& r : chosen) {
    deviations.push_back(r.logs.size() > 1 ? stats::standard_deviation(r.logs) : NAN);
    const double mean = r.logs.empty() ? NAN : stats::mean(r.logs);
    std::printf(
        "%-24s %-24s %.3fx  sd of log-speedup %.3f %% over %zu, median interval +-%.2f %%; off the mean in "
        "%%:",
        r.entry->task->id.c_str(), r.entry->name.c_str(), std::exp(mean), 100 * deviations.back(),
        r.logs.size(), r.widths.empty() ? NAN : 100 * stats::median(r.widths));
    for (const double l : r.logs) std::printf(" %+.2f", 100 * (l - mean));
    std::printf("\n");
    const auto off = [](const char* what, const std::vector<double>& times) {
      std::printf("    %s ns off its mean in %%:", what);
      for (const double t : times) std::printf(" %+.2f", 100 * (t - stats::mean(times)));
      std::printf("\n");
    };
    off("baseline's", r.baseline);
    off("candidate's", r.own);
    std::printf("    SM clock in MHz:");
    for (const int mhz : r.mhz) std::printf(" %d", mhz);
    std::printf("\n");
  }
  std::printf("spread: median %.3f %%, worst %.3f %%\n", 100 * stats::median(deviations),
              100 * *std::max_element(deviations.begin(), deviations.end()));
}

bool all(Bench& bench, measure::GpuWorkers& workers) {
  std::map<std::string, int> surprises;
  std::vector<double> held;
  int wrong = 0;
  const double begin = now();
  for (const Entry& e : bench.entries) {
    if (e.compiled.verdict != Verdict::kOk) {
      const bool surprise = e.expected != to_string(e.compiled.verdict);
      wrong += surprise;
      if (surprise)
        std::printf("SURPRISE %s/%s: %s %s\n", e.task->id.c_str(), e.name.c_str(),
                    std::string(to_string(e.compiled.verdict)).c_str(), e.compiled.log.c_str());
      continue;
    }
    Measurement m = workers.measure(e.candidate, e.compiled.binary).measurement;
    print_gpu(m);
    const std::string wanted = wanted_of(e);
    const bool surprise = wanted != to_string(m.verdict);
    wrong += surprise;
    std::printf("%s%-24s %-24s %s idle %s %s host_bound %s\n", surprise ? "SURPRISE " : "",
                e.task->id.c_str(), e.name.c_str(), line_of(m).c_str(),
                number_of(m.baseline_idle_ns, 0).c_str(), number_of(m.candidate_idle_ns, 0).c_str(),
                m.host_bound ? (*m.host_bound ? "yes" : "no") : "?");
    std::fflush(stdout);
    if (m.gpu_held_s) held.push_back(*m.gpu_held_s);
  }
  double sum = 0;
  for (const double h : held) sum += h;
  std::printf(
      "all: %zu measured in %.1f s, %d not as expected, %d processes lost; GPU held median %.3f s, mean %.3f "
      "s\n",
      held.size(), now() - begin, wrong, workers.lost(), stats::median(held),
      sum / static_cast<double>(held.size()));
  return wrong == 0;
}

// For compute-sanitizer: every kind of launch and copy of the harness around every right candidate, and few
// rounds of each.
bool few_rounds(Bench& bench, measure::GpuMeasurer& measurer) {
  int fine = 0, all = 0;
  const char* limit = std::getenv("WARPSMITH_BENCH_A_TASK");
  const int most = limit != nullptr ? std::atoi(limit) : std::numeric_limits<int>::max();
  std::map<std::string, int> taken;  // by task
  for (const Entry* e : good_ones(bench)) {
    if (++taken[e->task->id] > most) continue;
    const double begin = now();
    const Measurement m = measurer.measure(*e->task, e->candidate, e->compiled.binary).measurement;
    if (measurer.lost())
      throw Error("the GPU's context is lost: " + e->task->id + "/" + e->name + ": " + m.detail);
    // Under a tool that slows everything down, what a time is worth does not matter.
    const bool measured = m.rounds > 0;
    fine += measured;
    ++all;
    std::printf("%-24s %-24s %s%s %s, %.1f s\n", e->task->id.c_str(), e->name.c_str(),
                measured ? "" : "NOT TIMED: ", std::string(to_string(m.verdict)).c_str(), m.detail.c_str(),
                now() - begin);
    std::fflush(stdout);
  }
  std::printf("few: %d of %d right candidates were timed\n", fine, all);
  return fine == all;
}

// What is right must be so each time: order of atomics and chance of timing included.
bool repeat_checks(Bench& bench, measure::GpuMeasurer& measurer) {
  const char* times = std::getenv("WARPSMITH_BENCH_TIMES");
  const int repeats = times != nullptr ? std::atoi(times) : 20;
  constexpr double kNear = 0.5;
  int failed = 0, near = 0;
  const std::vector<const Entry*> good = good_ones(bench);
  for (const Entry* e : good) {
    double worst = 0;
    for (int i = 0; i < repeats; ++i) {
      const Measurement m = measurer.measure(*e->task, e->candidate, e->compiled.binary).measurement;
      if (m.error_bound > 0) worst = std::max(worst, m.max_error / m.error_bound);
      if (m.verdict == Verdict::kOk) continue;
      ++failed;
      std::printf("%s %s: %s\n", e->task->id.c_str(), e->name.c_str(), line_of(m).c_str());
    }
    if (worst < kNear) continue;
    ++near;
    std::printf("%-24s %-24s error up to %.2f of its bound\n", e->task->id.c_str(), e->name.c_str(), worst);
    std::fflush(stdout);
  }
  std::printf(
      "checks: %zu right candidates, %d times each: %d times not ok, %d candidates within half of their "
      "bound\n",
      good.size(), repeats, failed, near);
  return failed == 0;
}

constexpr const char* kLooping =
    "// plan: launch k<<<1, 32>>>(out)\n"
    "extern \"C\" __global__ void k(float* out) { volatile int go = 1; while (go) { out[0] += 1.f; } }\n";
constexpr const char* kCrashing =
    "// plan: launch k<<<1, 32>>>(out)\n"
    "extern \"C\" __global__ void k(float* out) { out[1ll << 40] = 1.f; }\n";

void add_bad_ones(Bench& bench, std::size_t count) {
  std::size_t made = 0;
  for (std::size_t i = 0; made < count; ++i) {
    const task::Task& t = bench.tasks[i % bench.tasks.size()];
    if (t.outputs.size() != 1 || t.outputs[0].name != "out") continue;
    const std::string comment = "// " + std::to_string(i) + "\n";
    bench.entries.push_back({&t,
                             made % 2 == 0 ? "loops" : "crashes",
                             made % 2 == 0 ? "timeout" : "out_of_bounds",
                             make_plan_candidate(t.id, (made % 2 == 0 ? kLooping : kCrashing) + comment, {}),
                             {}});
    ++made;
  }
}

bool throughput(Bench& bench, measure::GpuWorkers& workers) {
  constexpr std::size_t kAll = 500;
  std::vector<const Entry*> order;
  std::vector<const Entry*> bad, fine;
  for (const Entry& e : bench.entries)
    if (e.compiled.verdict == Verdict::kOk)
      (e.expected == "timeout" || e.expected == "out_of_bounds" ? bad : fine).push_back(&e);
  for (std::size_t i = 0; order.size() + bad.size() < kAll; ++i) order.push_back(fine[i % fine.size()]);
  order.insert(order.end(), bad.begin(), bad.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry* a, const Entry* b) { return a->task->id < b->task->id; });
  std::vector<double> held;
  std::map<std::string, int> verdicts;
  bool after_bad = false;
  int again = 0, wrong = 0;
  double around_bad = 0;  // seconds that went into bad ones and the one behind each
  const double begin = now();
  for (const Entry* e : order) {
    const double start = now();
    Measurement m = workers.measure(e->candidate, e->compiled.binary).measurement;
    const bool is_bad = e->expected == "timeout" || e->expected == "out_of_bounds";
    if (is_bad || after_bad) around_bad += now() - start;
    print_gpu(m);
    ++verdicts[std::string(to_string(m.verdict))];
    again += m.remeasured > 0;
    if (m.gpu_held_s) held.push_back(*m.gpu_held_s);
    const bool surprise = to_string(m.verdict) != wanted_of(*e);
    wrong += surprise;
    if (is_bad || after_bad || surprise)
      std::printf("%s%s %s: %s (%.2f s)\n", surprise ? "SURPRISE " : "", e->task->id.c_str(), e->name.c_str(),
                  line_of(m).c_str(), now() - start);
    after_bad = is_bad;
    std::fflush(stdout);
  }
  const double seconds = now() - begin;
  double sum = 0;
  for (const double h : held) sum += h;
  std::printf(
      "throughput: %zu candidates in %.1f s, %.1f a second; GPU held median %.3f s, mean %.3f s; processes "
      "lost %d\n",
      order.size(), seconds, static_cast<double>(order.size()) / seconds, stats::median(held),
      sum / static_cast<double>(held.size()), workers.lost());
  std::printf("  bad ones, and the one behind each: %.1f s; measured again by another process: %d\n",
              around_bad, again);
  for (const auto& [verdict, count] : verdicts) std::printf("  %s: %d\n", verdict.c_str(), count);
  std::printf("  not as expected: %d\n", wrong);
  return wrong == 0;
}

std::vector<std::string> ids_of(const Bench& bench) {
  std::vector<std::string> ids;
  for (const task::Task& t : bench.tasks) ids.push_back(t.id);
  return ids;
}

void python_eager(const Bench& bench, measure::GpuBaselines& baselines) {
  int within = 0, timed = 0;
  double worst = 1;
  for (const BaselineTiming& row : baselines.measure(ids_of(bench), {"torchscript"})) {
    if (row.state != BaselineState::kCovered) {
      std::printf("%-24s %s\n", row.task.c_str(), row.reason.c_str());
      continue;
    }
    std::printf("%-24s TorchScript over Python, in one process: %.4f [%.4f, %.4f]\n", row.task.c_str(),
                row.ratio, row.low, row.high);
    ++timed;
    const double apart = std::max(row.ratio, 1 / row.ratio);
    within += apart <= 1.03;
    worst = std::max(worst, apart);
  }
  std::vector<double> ratios;
  for (const measure::EagerTimes& t : baselines.eager_times(ids_of(bench))) {
    if (!t.problem.empty()) {
      std::printf("%-24s %s\n", t.task.c_str(), t.problem.c_str());
      continue;
    }
    ratios.push_back(t.python_ns / t.ours_ns);
    std::printf("%-24s this process %.0f ns, Python's %.0f ns: %.4f over %d calls\n", t.task.c_str(),
                t.ours_ns, t.python_ns, ratios.back(), t.calls);
  }
  if (!ratios.empty())
    std::printf("two processes: %.4f to %.4f\n", *std::min_element(ratios.begin(), ratios.end()),
                *std::max_element(ratios.begin(), ratios.end()));
  std::printf("python_eager: %d of %d within 3 %%, worst %.4f\n", within, timed, worst);
}

void time_baselines(const Bench& bench, measure::GpuBaselines& baselines) {
  const double begin = now();
  int covered = 0;
  const std::vector<BaselineTiming> rows = baselines.measure(ids_of(bench), measure::baseline_names());
  for (const BaselineTiming& row : rows) {
    covered += row.state == BaselineState::kCovered;
    std::printf("%-24s %-30s %s %.4f [%.4f, %.4f] %.0f / %.0f ns, %.1f s %s\n", row.task.c_str(),
                row.name.c_str(), std::string(to_string(row.state)).c_str(), row.ratio, row.low, row.high,
                row.eager_ns, row.baseline_ns, row.seconds, row.reason.c_str());
  }
  std::printf("baselines: %d of %zu covered in %.1f s\n", covered, rows.size(), now() - begin);
}

int run(const std::string& mode, const fs::path& datasets) {
  Bench bench = open_bench(datasets);
  read_target(bench);
  if (mode == "python_eager" || mode == "baselines") {
    if (mode == "baselines") {
      bench.settings.budget_s = 0.5;
      fs::remove_all(bench.cache / "timed" / "baselines");
    }
    measure::GpuBaselines baselines({bench.settings, bench.datasets,
                                     measure::harness_cubin(bench.target, bench.cache, true),
                                     bench.cache / "timed"});
    mode == "baselines" ? time_baselines(bench, baselines) : python_eager(bench, baselines);
    return 0;
  }
  if (mode == "throughput") add_bad_ones(bench, 25);
  compile(bench);
  std::vector<std::byte> harness = measure::harness_cubin(bench.target, bench.cache, true);
  if (mode == "all" || mode == "throughput" || mode == "spread") {
    measure::GpuWorkers workers(bench.settings, bench.datasets, std::move(harness));
    bool fine = true;
    if (mode == "all") fine = all(bench, workers);
    if (mode == "throughput") fine = throughput(bench, workers);
    if (mode == "spread") spread(bench, workers);
    return fine ? kExitOk : kExitFailed;
  }
  if (mode == "few") {
    bench.settings.protocol = {.buckets = 3, .rounds_a_bucket = 1, .target = 0.9};
    bench.settings.remeasure_above = 1e9;
    bench.settings.remeasure_over_best = 1e9;
  }
  if (mode == "checks") bench.settings.timing = false;
  measure::load_torch_cuda();
  // Under a tool launches cost what the tool costs: the context is taken as it comes.
  std::optional<device::Gpu> any;
  if (mode == "few") any.emplace();
  measure::GpuMeasurer measurer(bench.settings, harness);
  bool fine = true;
  if (mode == "null") null_test(bench, measurer);
  if (mode == "few") fine = few_rounds(bench, measurer);
  if (mode == "checks") fine = repeat_checks(bench, measurer);
  return fine ? kExitOk : kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  start_logging("gpu_bench");
  std::string mode = argc > 1 ? argv[1] : "";
  if (mode.empty()) {  // as `make benchmarks` starts it
    if (process::nvidia_gpus().empty()) {
      std::printf("no GPU here\n");
      return kExitOk;
    }
    mode = "null";
  }
  if (mode != "null" && mode != "spread" && mode != "throughput" && mode != "all" && mode != "few" &&
      mode != "checks" && mode != "python_eager" && mode != "baselines") {
    std::fprintf(
        stderr, "usage: gpu_bench null|spread|throughput|python_eager|baselines|all|checks|few [DATASETS]\n");
    return kExitUsage;
  }
  try {
    process::become_subreaper();
    return run(mode, argc > 2 ? argv[2] : WARPSMITH_SOURCE_DIR "/datasets");
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  }
}

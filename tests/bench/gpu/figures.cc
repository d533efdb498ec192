#include "figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "warpsmith/measure/baselines.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::gpu_bench {

namespace {

std::ptrdiff_t count_near(const std::vector<double>& scores, double wanted) {
  return std::count_if(scores.begin(), scores.end(), [&](double s) { return std::abs(s - wanted) <= 0.01; });
}

}  // namespace

namespace {

std::string fact(const Measurement& m, const char* name) {
  const auto found = m.clock.find(name);
  return found == m.clock.end() ? "?" : found->second;
}

// WARPSMITH_BENCH_SAMPLES: a file that gets a line a measurement, what it is of, then the nanoseconds of
// each round, all of the baseline and all of the candidate.
void write_samples(const std::string& name, const std::vector<std::int64_t>& samples) {
  const char* file = std::getenv("WARPSMITH_BENCH_SAMPLES");
  if (file == nullptr || *file == '\0') return;
  std::string line = name;
  for (const std::int64_t each : samples) line += " " + std::to_string(each);
  std::ofstream(file, std::ios::app) << line << '\n';
}

}  // namespace

void null_python(Bench& bench, measure::GpuMeasurer& measurer) {
  const char* most = std::getenv("WARPSMITH_BENCH_TIMES");
  const int last = most != nullptr ? std::atoi(most) : 2;
  std::vector<double> once, twice, held;
  const auto measured = [&](const task::Task& t, int times) {
    try {
      const measure::Measured m = measurer.measure_reference_as_python(t, times);
      write_samples(t.id + (times == 1 ? " once" : " twice"), m.samples);
      return m.measurement;
    } catch (const Error& e) {  // of this task: the others have theirs
      if (measurer.lost()) throw;
      Measurement failed;
      failed.verdict = Verdict::kNotMeasured;
      failed.detail = e.what();
      return failed;
    }
  };
  for (const task::Task& t : bench.tasks)
    for (int times = 1; times <= last; ++times) {
      const Measurement m = measured(t, times);
      if (once.empty()) print_gpu(m);
      std::printf(
          "%-24s %s  %s, baseline's row %s calls, a call costs %s ns beside its work, a launch in its "
          "context %s, "
          "GPU held %.2f s (%s; the candidate's rows: %s)\n",
          t.id.c_str(), times == 1 ? "once " : "twice", line_of(m).c_str(), fact(m, "baseline_batch").c_str(),
          fact(m, "call_overhead_ns").c_str(), fact(m, "context_launch_ns").c_str(), m.seconds,
          fact(m, "held_s").c_str(), fact(m, "candidate_spent_s").c_str());
      std::fflush(stdout);
      held.push_back(m.seconds);
      (times == 1 ? once : twice).push_back(m.rounds > 0 ? m.speedup : 0);
    }
  std::printf(
      "null test, python: once within 1.00 +- 0.01: %td of %zu; twice within 0.50 +- 0.01: %td of %zu; GPU "
      "held %.2f s in the median, task and baseline made included\n",
      count_near(once, 1), once.size(), count_near(twice, 0.5), twice.size(), stats::median(held));
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
  std::printf("null test: references within 1.00 +- 0.01: %td of %zu; candidates: %td of %zu\n",
              count_near(references, 1), references.size(), count_near(candidates, 1), candidates.size());
}

namespace {

struct Repeats {
  const Entry* entry = nullptr;
  std::vector<double> logs, widths;
  std::vector<double> baseline, own;  // logarithms of nanoseconds
  std::vector<int> mhz;
};

}  // namespace

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
      write_samples(r.entry->task->id + " " + r.entry->name, measured.samples);
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
  const std::vector<BaselineTiming> rows = baselines.measure(ids_of(bench), known_baselines());
  for (const BaselineTiming& row : rows) {
    covered += row.state == BaselineState::kCovered;
    std::printf("%-24s %-30s %s %.4f [%.4f, %.4f] %.0f / %.0f ns, %.1f s %s\n", row.task.c_str(),
                row.name.c_str(), std::string(to_string(row.state)).c_str(), row.ratio, row.low, row.high,
                row.eager_ns, row.baseline_ns, row.seconds, row.reason.c_str());
  }
  std::printf("baselines: %d of %zu covered in %.1f s\n", covered, rows.size(), now() - begin);
}

}  // namespace warpsmith::gpu_bench

#include "task_bench.h"

#include <algorithm>

#include "warpsmith/base/random.h"
#include "warpsmith/measure/pairs.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr std::uint64_t kOracleBytes = 1ull << 30;  // of right answers in the host's memory
constexpr int kAloneRounds = 21, kIdleCalls = 7;
constexpr int kEstimateCalls = 8, kEstimatePlaces = 8;

}  // namespace

GpuTaskBench::GpuTaskBench(GpuHarness& harness, const task::Task& task, const Settings& settings)
    : harness_(harness),
      task_(task::under_math(task, settings.math)),
      reference_(task_, Place::kGpu),
      oracle_(harness, task_, reference_, settings.seed, kOracleBytes),
      cases_(gpu_check_cases(task_, settings.check_seeds)),
      seed_(settings.seed) {
  {
    const int most = most_calls_a_row(
        gpu_sets(harness_.gpu(), input_bytes(task_, timing_dims()) + output_bytes(task_, timing_dims())));
    const int few = std::min(most, kEstimateCalls);
    GpuBaselineArm first(harness_, task_, reference_, timing_dims(), few, kEstimatePlaces);
    const RowEstimate row = estimate_row(
        first, [&] { return first.enqueue_ns(); }, kRowNs, few, random_key({seed_, name_key("baseline")}));
    baseline_call_ns_ = row.call_ns;
    calls_ = gpu_calls_a_row(row.call_ns, row.enqueue_ns, kRowNs, most);
  }
}

GpuBaselineArm& GpuTaskBench::baseline() {
  if (!baseline_) baseline_ = another_baseline();
  return *baseline_;
}

std::unique_ptr<GpuBaselineArm> GpuTaskBench::another_baseline() const {
  return std::make_unique<GpuBaselineArm>(harness_, task_, reference_, timing_dims(), calls_);
}

double GpuTaskBench::alone_ns() { return alone_ns_ > 0 ? alone_ns_ : alone_again_ns(); }

double GpuTaskBench::alone_again_ns() {
  const std::uint64_t key = random_key({seed_, name_key("alone"), ++alone_again_});
  return alone_ns_ = stats::median(time_alone(baseline(), calls_, kAloneRounds, key));
}

double GpuTaskBench::idle_ns() {
  if (idle_ns_ > 0) return idle_ns_;
  std::vector<double> times;
  for (int i = 0; i < kIdleCalls; ++i) {
    baseline().renew(random_key({seed_, name_key("idle"), static_cast<std::uint64_t>(i)}), 1);
    times.push_back(static_cast<double>(baseline().run_idle().elapsed_ns));
  }
  return idle_ns_ = stats::median(times);
}

std::vector<double> GpuTaskBench::timed_bounds() {
  for (const CheckCase& check : cases_)
    if (check.dims == timing_dims() && check.distribution < 0) oracle_.asked(check);
  return oracle_.bounds_at(timing_dims());
}

}  // namespace warpsmith::measure

#include "bench.h"

#include <algorithm>

#include "extension/host_rows.h"
#include "oracle.h"
#include "warpsmith/base/random.h"
#include "warpsmith/measure/pairs.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr std::uint64_t kOracleBytes = 1ull << 30;  // of right answers in the host's memory
constexpr int kAloneRounds = 21, kIdleCalls = 7;
constexpr int kEstimateCalls = 8, kEstimatePlaces = 8;

}  // namespace

GpuBench::GpuBench(GpuHarness& harness, const task::Task& task, const Settings& settings)
    : Bench(task, settings, Place::kGpu), harness_(harness) {
  // What was kept for the tasks before may be most of the GPU.
  reference_.release_memory();
  harness_.memory().drop_spare();
  oracle_ = std::make_unique<GpuOracle>(harness, task_, reference_, settings.seed, kOracleBytes);
  cases_ = gpu_check_cases(task_, settings.check_seeds);
  const int most = most_calls_a_row(gpu_sets(harness_.gpu(), bytes_a_call()));
  const int few = std::min(most, kEstimateCalls);
  GpuBaselineArm first(harness_, task_, reference_, timing_dims(), few, kEstimatePlaces);
  const RowEstimate row = estimate_row(
      first, [&] { return first.enqueue_ns(); }, kRowNs, few, random_key({seed_, name_key("baseline")}));
  paced_by_host_ = first.is_paced_by_host();
  baseline_call_ns_ = row.call_ns;
  calls_ = gpu_calls_a_row(row.call_ns, row.enqueue_ns, kRowNs, most);
}

GpuBench::~GpuBench() = default;

HostRows& GpuBench::host_rows(const std::string& kind, const MakeHostRows& make) {
  std::unique_ptr<HostRows>& rows = host_rows_[kind];
  if (!rows) rows = make();
  return *rows;
}

GpuBaselineArm& GpuBench::baseline() {
  if (!baseline_) baseline_ = another_baseline();
  return *baseline_;
}

std::unique_ptr<GpuBaselineArm> GpuBench::another_baseline() const {
  auto arm = std::make_unique<GpuBaselineArm>(harness_, task_, reference_, timing_dims(), calls_);
  if (paced_by_host_) arm->pace_by_host();
  return arm;
}

double GpuBench::alone_ns() { return stats::median(alone().times(calls_)); }

std::vector<double> GpuBench::rows_alone(int calls, std::uint64_t key) {
  return time_alone(baseline(), calls, kAloneRounds, key);
}

double GpuBench::idle_ns() {
  if (idle_ns_ > 0) return idle_ns_;
  std::vector<double> times;
  for (int i = 0; i < kIdleCalls; ++i) {
    baseline().renew(random_key({seed_, name_key("idle"), static_cast<std::uint64_t>(i)}), 1);
    times.push_back(static_cast<double>(baseline().run_idle().elapsed_ns));
  }
  return idle_ns_ = stats::median(times);
}

}  // namespace warpsmith::measure

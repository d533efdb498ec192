#include "task_bench.h"

#include <algorithm>
#include <cmath>

#include "warpsmith/base/random.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/pairs.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr double kIntervalNs = 500e3, kBaselineIntervalNs = 100e3, kLongIntervalNs = 20e6;
constexpr int kMostCalls = 128;
constexpr std::uint64_t kOperandBytes = 64ull << 20;   // of one arm
constexpr std::uint64_t kRotationBytes = 32ull << 20;  // beyond private caches, where they cannot be flushed
constexpr int kAloneRounds = 15;

}  // namespace

TaskBench::TaskBench(const task::Task& task, const ValueSource& source, int check_seeds, std::uint64_t seed)
    : task_(task),
      source_(source),
      reference_(task_),
      oracle_(task_, reference_, source_, seed),
      cases_(check_cases(task_, check_seeds)),
      seed_(seed) {
  baseline_call_ns_ = stats::median(time_alone(baseline(1), 1, 5, random_key({seed_, name_key("estimate")})));
}

BaselineArm& TaskBench::baseline(int calls) {
  if (!baseline_ || baseline_calls_ < calls) {
    baseline_.reset();  // first: both at once may be much memory
    baseline_ = std::make_unique<BaselineArm>(task_, reference_, source_, timing_dims(), calls);
    baseline_calls_ = calls;
  }
  return *baseline_;
}

double TaskBench::alone_ns(int calls) {
  if (!alone_ns_)
    alone_ns_ = stats::median(
        time_alone(baseline(calls), calls, kAloneRounds, random_key({seed_, name_key("alone")})));
  return *alone_ns_;
}

double TaskBench::alone_again_ns(int calls, double pause_s) {
  const std::uint64_t key = random_key({seed_, name_key("alone again"), ++alone_again_});
  const std::vector<double> times = time_alone(baseline(calls), calls, 2 * kAloneRounds, key, pause_s);
  std::vector<double> unpaused;  // the host has drifted: these stand for it from now on
  for (std::size_t i = 0; i < times.size(); i += 2) unpaused.push_back(times[i]);
  alone_ns_ = stats::median(unpaused);
  return stats::median(times);
}

double TaskBench::compulsory_bytes() const {
  const double all =
      static_cast<double>(input_bytes(task_, timing_dims()) + output_bytes(task_, timing_dims()));
  if (!task_.bytes) return all;
  try {
    return std::min(all, task_.bytes->evaluate_real(task::dims_scope(timing_dims())));
  } catch (const task::ExpressionError&) {
    return all;
  }
}

std::vector<double> TaskBench::timed_bounds() {
  for (const CheckCase& check : cases_)
    if (check.dims == timing_dims() && check.distribution < 0) oracle_.expected(check);
  return oracle_.bounds_at(timing_dims());
}

int calls_an_interval(double baseline_ns, double candidate_ns, std::uint64_t bytes_a_call) {
  const std::uint64_t bytes = std::max<std::uint64_t>(1, bytes_a_call);
  const double wanted =
      std::max(kIntervalNs / std::max(1.0, candidate_ns), kBaselineIntervalNs / std::max(1.0, baseline_ns));
  const double slow = std::max(baseline_ns, candidate_ns);
  double calls = std::min(std::ceil(wanted), std::max(1.0, kLongIntervalNs / std::max(1.0, slow)));
  if (!can_flush())
    calls = std::max(calls, std::ceil(static_cast<double>(kRotationBytes) / static_cast<double>(bytes)));
  calls = std::min(calls, static_cast<double>(std::max<std::uint64_t>(1, kOperandBytes / bytes)));
  return static_cast<int>(std::clamp(calls, 1.0, static_cast<double>(kMostCalls)));
}

}  // namespace warpsmith::measure

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
constexpr std::uint64_t kOperandBytes = 6ull << 20;  // of one arm, where one call does not need more: they stay in the shared cache
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
  const auto found = alone_ns_.find(calls);
  return found != alone_ns_.end() ? found->second : alone_again_ns(calls);
}

// Beside a second copy of itself, which touches as much memory as a candidate does: with less in the shared cache it would be
// faster than it can be in a pair, and no candidate were to blame.
double TaskBench::alone_again_ns(int calls) {
  const std::uint64_t key = random_key({seed_, name_key("alone"), ++alone_again_});
  BaselineArm& arm = baseline(calls);
  BaselineArm other(task_, reference_, source_, timing_dims(), calls);
  return alone_ns_[calls] = stats::median(time_beside(arm, other, calls, kAloneRounds, key));
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
  calls = std::min(calls, static_cast<double>(std::max<std::uint64_t>(1, kOperandBytes / bytes)));
  return static_cast<int>(std::clamp(calls, 1.0, static_cast<double>(kMostCalls)));
}

}  // namespace warpsmith::measure

#include "bench.h"

#include <algorithm>
#include <cmath>

#include "warpsmith/base/random.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/pairs.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr double kIntervalNs = 200e3;
constexpr int kMostCalls = 128;
// Of one arm, where one call does not need more. What a core gets of the cache that it shares is far below
// its size where neighbours use it too: on a shared host a baseline of 57 us took 86 us with operands of 15
// MiB in turn, and varied by 5 % instead of 1 %.
constexpr std::uint64_t kOperandBytes = 3ull << 20;
constexpr int kAloneRounds = 15, kEstimateRounds = 9;

int calls_an_interval(double baseline_ns, std::uint64_t bytes_a_call) {
  const auto most = static_cast<double>(kOperandBytes / std::max<std::uint64_t>(1, bytes_a_call));
  const double wanted = std::ceil(kIntervalNs / std::max(1.0, baseline_ns));
  return static_cast<int>(std::clamp(std::min(wanted, most), 1.0, static_cast<double>(kMostCalls)));
}

}  // namespace

CpuBench::CpuBench(const task::Task& task, const ValueSource& source, const Settings& settings)
    : Bench(task, settings, Place::kHost), source_(source) {
  oracle_ = std::make_unique<Oracle>(task_, reference_, source_, settings.seed);
  cases_ = check_cases(task_, settings.check_seeds);
  baseline_call_ns_ =
      stats::median(time_alone(baseline(1), 1, kEstimateRounds, random_key({seed_, name_key("estimate")})));
  calls_ = calls_an_interval(baseline_call_ns_, bytes_a_call());
}

BaselineArm& CpuBench::baseline(int calls) {
  if (!baseline_ || baseline_calls_ < calls) {
    baseline_.reset();  // first: both at once may be much memory
    baseline_ = std::make_unique<BaselineArm>(task_, reference_, source_, timing_dims(), calls);
    baseline_calls_ = calls;
  }
  return *baseline_;
}

// Beside a second copy of itself, which touches as much memory as a candidate does: with less in the shared
// cache it would be faster than it can be in a pair, and no candidate were to blame.
std::vector<double> CpuBench::rows_alone(int calls, std::uint64_t key) {
  BaselineArm& arm = baseline(calls);
  BaselineArm other(task_, reference_, source_, timing_dims(), calls);
  return time_beside(arm, other, {calls, calls}, kAloneRounds, key);
}

}  // namespace warpsmith::measure

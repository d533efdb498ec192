#include "extension/host_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "timing/calls_a_row.h"
#include "timing/judge.h"
#include "warpsmith/base/random.h"
#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/pairs.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr int kMostCalls = 2048;
// kFewestCalls shorter ones make a row, of either side: the first takes longer, by up to 5 % of 2 ms.
constexpr double kLongCallNs = 30e6;
// Of an interval: four places of it fit what a child is told.
constexpr std::uint64_t kMostOperands = 12 << 10;
constexpr int kEstimateRounds = 5, kFewCalls = 8, kMoreCalls = 64;
constexpr int kFewestAlone = 13;
constexpr int kMostOfSlow = 4;  // calls of the baseline in a row beside a candidate that is slower

}  // namespace

int HostRows::calls_a_row(const Pace& pace, double call_ns, int most) {
  const double least = call_ns < kLongCallNs ? kFewestCalls : 1;
  return std::min(most, static_cast<int>(std::max(std::round(pace.row_ns / std::max(1.0, call_ns)), least)));
}

int HostRows::room_for(int calls) const {
  return calls > 1 ? std::max(calls, std::min(kMostOfSlow, most_calls_)) : 1;
}

RowCalls HostRows::calls_beside(double candidate_ns, double baseline_ns, int least, int most) const {
  return equal_rows(baseline_ns, {calls_, room_}, candidate_ns, {least, most});
}

std::optional<RowCalls> HostRows::other_calls_beside(RowCalls now, double candidate_ns, double baseline_ns,
                                                     int least, int most) const {
  return other_calls(now, baseline_ns, {calls_, room_}, candidate_ns, {least, most});
}

HostRows::HostRows(const GpuHarness& harness, const GpuBench& task, const Pace& pace, std::uint64_t seed,
                   const Make& make)
    : alone_(random_key({seed, name_key("host clock alone")}), [this, pace](int calls, std::uint64_t key) {
        // Long rows scatter less.
        const double rows = pace.row_ns / std::max(1.0, row_ns_ / calls_ * calls);
        const int rounds =
            std::clamp(static_cast<int>(rows * pace.alone_rounds), kFewestAlone, pace.alone_rounds);
        return time_alone(*baseline_, calls, rounds, key);
      }) {
  const task::Dims& dims = task.timing_dims();
  const std::uint64_t bytes =
      std::max<std::uint64_t>(1, input_bytes(task.task(), dims) + output_bytes(task.task(), dims));
  const std::uint64_t tensors =
      std::max<std::size_t>(1, task.task().inputs.size() + task.task().outputs.size());
  const std::uint64_t room =
      std::min(harness.gpu().facts().memory_bytes / 16 / bytes, kMostOperands / tensors);
  double begin = seconds_now();
  const auto note = [&](const char* what) {
    const double now = seconds_now();
    spent_ += fmt::format("{}{} {:.2f}", spent_.empty() ? "" : ", ", what, now - begin);
    begin = now;
  };
  const auto estimate = [&](int calls) {
    return stats::median(
        time_alone(*make(calls), calls, kEstimateRounds, random_key({seed, name_key("host clock")})));
  };
  most_calls_ = static_cast<int>(std::max(1.0, std::min<double>(kMostCalls, static_cast<double>(room) - 1)));
  few_calls_ = static_cast<int>(std::clamp<std::uint64_t>(room, 1, kFewCalls));
  few_call_ns_ = estimate(few_calls_);
  note("few calls");
  double call_ns = few_call_ns_;
  calls_ = calls_a_row(pace, call_ns, most_calls_);
  // The beginning of a short row is much of it.
  if (calls_ > few_calls_ && most_calls_ > few_calls_) {
    call_ns = estimate(std::min(most_calls_, kMoreCalls));
    calls_ = calls_a_row(pace, call_ns, most_calls_);
    note("more calls");
  }
  row_ns_ = call_ns * calls_;
  room_ = room_for(calls_);
  baseline_ = make(room_);
  note("memory");
  call_overhead_ns_ = baseline_->take_off_call(calls_);
  // How much of it can be taken off is known from rows.
  if (call_overhead_ns_ > 0)
    (void)time_alone(*baseline_, calls_, kEstimateRounds, random_key({seed, name_key("taken off")}));
  note("calls that do nothing");
}

}  // namespace warpsmith::measure

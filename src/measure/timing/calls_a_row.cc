#include "calls_a_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "warpsmith/base/random.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

int gpu_calls_a_row(double call_ns, double enqueue_ns, double row_ns, int most) {
  const double wanted = std::round(row_ns / std::max(1.0, call_ns));
  const double enqueued = std::floor(kLongestRowNs / std::max(1.0, enqueue_ns));
  return static_cast<int>(std::clamp(std::min(wanted, enqueued), 1.0, std::max<double>(1, most)));
}

RowCalls equal_rows(double own_ns, CallsRange own, double others_ns, CallsRange others) {
  constexpr double kMuch = 0.7;  // of the difference in length that fewer calls leave
  RowCalls best;
  double least_apart = 0;
  for (int calls = own.least; calls <= own.most; ++calls) {
    const double wanted = std::round(calls * own_ns / std::max(1.0, others_ns));
    const int beside = static_cast<int>(std::clamp<double>(wanted, others.least, others.most));
    const double apart =
        std::abs(std::log(calls * std::max(1.0, own_ns) / (beside * std::max(1.0, others_ns))));
    if (calls > own.least && apart >= kMuch * least_apart) continue;
    best = {calls, beside};
    least_apart = apart;
  }
  return best;
}

std::optional<RowCalls> other_calls(RowCalls now, double own_ns, CallsRange own, double others_ns,
                                    CallsRange others) {
  constexpr double kAlike = 1.06;  // times as long: chance of some rows
  const double own_row = own_ns * now.own, others_row = others_ns * now.others;
  if (std::max(own_row, others_row) <= kAlike * std::min(own_row, others_row)) return std::nullopt;
  const RowCalls next = equal_rows(own_ns, own, others_ns, others);
  return next.own == now.own && next.others == now.others ? std::nullopt : std::optional(next);
}

RowEstimate estimate_row(Arm& arm, const std::function<double()>& enqueue_ns, double row_ns, int most,
                         std::uint64_t key) {
  constexpr std::uint64_t kRows = 3;
  constexpr double kShortRow = 0.125;  // of a row
  RowEstimate estimate;
  // A row of one call is some microseconds too long for what it tells of a call, so where that is short there
  // are rows of more.
  for (const std::uint64_t pass : {0, 1}) {
    const int calls = estimate.calls;
    const std::uint64_t looked_at = random_key({key, name_key("looked at"), pass}) % kRows;
    std::vector<double> times;
    estimate.enqueue_ns = std::numeric_limits<double>::infinity();
    for (std::uint64_t row = 0; row < kRows; ++row) {
      const std::uint64_t row_key = random_key({key, name_key("estimate"), pass, row});
      arm.renew(row_key, calls);
      const Arm::Run run = arm.run(calls);
      if (run.verdict != Verdict::kOk) {
        estimate.failed = run;
        return estimate;
      }
      times.push_back(std::max(1.0, static_cast<double>(run.elapsed_ns) / calls));
      estimate.enqueue_ns = std::min(estimate.enqueue_ns, enqueue_ns() / calls);
      std::optional<int> call = arm.unwritten(calls);
      if (!call && row == looked_at)
        call = static_cast<int>(random_key({row_key, 1}) % static_cast<std::uint64_t>(calls));
      if (call) estimate.failed = arm.inspect(*call);
      if (estimate.failed.verdict != Verdict::kOk) return estimate;
    }
    estimate.call_ns = stats::median(times);
    const double wanted_ns = pass == 0 ? kShortRow * row_ns : row_ns;
    estimate.calls = gpu_calls_a_row(estimate.call_ns, estimate.enqueue_ns, wanted_ns, most);
    if (pass == 0 && estimate.calls == 1) {
      estimate.calls = gpu_calls_a_row(estimate.call_ns, estimate.enqueue_ns, row_ns, most);
      break;
    }
  }
  return estimate;
}

}  // namespace warpsmith::measure

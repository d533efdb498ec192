#include "extension/host_rows.h"

#include <algorithm>
#include <cmath>

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
constexpr int kEstimateRounds = 5, kEstimateCalls = 8;

}  // namespace

int HostRows::calls_a_row(const Pace& pace, double call_ns, int most) {
  const double least = call_ns < kLongCallNs ? kFewestCalls : 1;
  return std::min(most, static_cast<int>(std::max(std::round(pace.row_ns / std::max(1.0, call_ns)), least)));
}

HostRows::HostRows(const GpuHarness& harness, const GpuBench& task, const Pace& pace, std::uint64_t seed,
                   const Make& make)
    : alone_(random_key({seed, name_key("host clock alone")}),
             [this, rounds = pace.alone_rounds](int calls, std::uint64_t key) {
               return time_alone(*baseline_, calls, rounds, key);
             }) {
  const task::Dims& dims = task.timing_dims();
  const std::uint64_t bytes =
      std::max<std::uint64_t>(1, input_bytes(task.task(), dims) + output_bytes(task.task(), dims));
  const std::uint64_t tensors =
      std::max<std::size_t>(1, task.task().inputs.size() + task.task().outputs.size());
  const std::uint64_t room =
      std::min(harness.gpu().facts().memory_bytes / 16 / bytes, kMostOperands / tensors);
  double call_ns = 0;
  {
    const int few = static_cast<int>(std::clamp<std::uint64_t>(room, 1, kEstimateCalls));
    call_ns = stats::median(
        time_alone(*make(few), few, kEstimateRounds, random_key({seed, name_key("host clock")})));
  }
  most_calls_ = static_cast<int>(std::max(1.0, std::min<double>(kMostCalls, static_cast<double>(room) - 1)));
  calls_ = calls_a_row(pace, call_ns, most_calls_);
  row_ns_ = call_ns * calls_;
  baseline_ = make(calls_);
  call_overhead_ns_ = baseline_->take_off_call(calls_);
  // How much of it can be taken off is known from rows.
  if (call_overhead_ns_ > 0)
    (void)time_alone(*baseline_, calls_, kEstimateRounds, random_key({seed, name_key("taken off")}));
}

}  // namespace warpsmith::measure

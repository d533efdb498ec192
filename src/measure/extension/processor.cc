#include "processor.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

double enqueue_ns(const GpuHarness& harness, int times) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLaunches = 256;
  constexpr double kPatience = 10;  // seconds
  std::vector<double> each;
  for (int i = -1; i < times; ++i) {  // the first warms up
    const Clock::time_point begin = Clock::now();
    for (int n = 0; n < kLaunches; ++n) harness.kernels().launch_nothing();
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    harness.gpu().settle(kPatience);
    if (i >= 0) each.push_back(ns / kLaunches);
  }
  return stats::median(std::move(each));
}

StayOn::StayOn(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  if (cpu < 0 || cpu >= CPU_SETSIZE || ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  CPU_SET(static_cast<std::size_t>(cpu), &one);
  there_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
}

StayOn::~StayOn() {
  if (there_) (void)::sched_setaffinity(0, sizeof before_, &before_);
}

std::optional<Processor> Processor::claim(const GpuHarness& harness) {
  constexpr std::size_t kMost = 16;
  constexpr int kTimes = 5;
  const std::vector<int> allowed = process::allowed_cpus();
  const std::size_t count = std::min(kMost, allowed.size());
  std::vector<std::pair<double, int>> by_speed;
  for (std::size_t i = 0; i < count; ++i) {
    const int cpu = allowed[i * allowed.size() / count];
    if (const StayOn here(cpu); here.there()) by_speed.emplace_back(enqueue_ns(harness, kTimes), cpu);
  }
  std::sort(by_speed.begin(), by_speed.end());
  for (const auto& [ns, cpu] : by_speed) {
    const auto path =
        timing_lock_path().parent_path() / ("warpsmith-timing-cpu-" + std::to_string(cpu) + ".lock");
    if (std::optional<FileLock> lock = FileLock::try_lock(path)) return Processor(cpu, std::move(*lock));
  }
  return std::nullopt;
}

}  // namespace warpsmith::measure

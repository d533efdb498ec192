#include "warpsmith/process/gpu_neighbours.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "guard/tree.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::process {

namespace {

constexpr std::uint64_t kBeforeUs = 200'000;
constexpr int kBusyPercent = 5;
constexpr const char* kOurPrograms = "warpsmith";

bool is_ours(int pid) {
  constexpr int kDeepest = 100;
  for (int i = 0; i < kDeepest && pid > 1; ++i) {
    if (pid == ::getpid()) return true;
    const ProcessStat stat = stat_of(pid);
    if (stat.name.starts_with(kOurPrograms)) return true;
    pid = stat.parent;
  }
  return false;
}

std::uint64_t now_us() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace

GpuNeighbours::GpuNeighbours(const GpuWatch& watch) : watch_(watch) {
  const auto processes = watch.processes();
  can_tell_ = processes && std::find(processes->begin(), processes->end(), ::getpid()) != processes->end() &&
              watch.uses(now_us()).has_value();
  begin();
}

void GpuNeighbours::begin() { begin_us_ = now_us(); }

std::string GpuNeighbours::seen() const {
  if (!can_tell_) return "";
  const auto uses = watch_.uses(begin_us_ + kBeforeUs);
  if (!uses) return "";
  for (const GpuUse& use : *uses) {
    if (use.sm_percent < kBusyPercent || is_ours(use.pid) || !process_lives(use.pid)) continue;
    const std::string name = stat_of(use.pid).name;
    return "process " + std::to_string(use.pid) + (name.empty() ? "" : " (`" + name + "`)") +
           " worked on this GPU, too";
  }
  return "";
}

}  // namespace warpsmith::process

#include "warpsmith/measure/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "warpsmith/base/text.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::measure {

namespace {

constexpr std::size_t kLine = 64;

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name") || line.starts_with("Hardware")) {
      const std::size_t colon = line.find(':');
      if (colon != std::string::npos) return trim(line.substr(colon + 1));
    }
  }
  return "unknown CPU";
}

std::size_t eviction_bytes() {
  static const std::size_t bytes = [] {
    const long size = ::sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or -1 where the system does not say
    return 2 * static_cast<std::size_t>(size > 0 ? size : 2 << 20);
  }();
  return bytes;
}

}  // namespace

DeviceFacts cpu_facts() {
  DeviceFacts facts;
  facts.kind = "cpu";
  facts.name = cpu_model();
  facts.host = process::host_name();
  facts.cores = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  facts.load_before = load_average();
  return facts;
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

void evict_private_caches() {
  static std::vector<char> block(eviction_bytes(), 1);
  int sum = 0;
  // Written too: dirty lines of the operands must make room as well as clean ones.
  for (std::size_t i = 0; i < block.size(); i += kLine) sum += block[i]++;
  asm volatile("" : : "r"(sum) : "memory");
}

void stay_on_one_cpu(std::size_t number) {
  const std::vector<int> cpus = process::allowed_cpus();
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpus[cpus.size() - 1 - number % cpus.size()]), &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

std::string cache_state() {
  return "operands in the shared cache (private caches evicted, " + std::to_string(eviction_bytes() >> 10) +
         " KiB walked)";
}

double bandwidth_ceiling(int threads) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kBytes = 8 << 10;  // source and destination fit any first-level cache
  constexpr int kCopies = 2000, kTries = 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point begin = Clock::now();
    for (int copy = 0; copy < kCopies; ++copy) {
      std::memcpy(to.data(), from.data(), kBytes);
      asm volatile("" : : "r"(to.data()), "r"(from.data()) : "memory");
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (seconds > 0) best = std::max(best, 2.0 * kBytes * kCopies / seconds);
  }
  return best * std::max(1, threads);
}

std::filesystem::path timing_lock_path() {
  const char* asked = std::getenv("WARPSMITH_TIMING_LOCK");
  return asked != nullptr && *asked != '\0' ? asked : "/tmp/warpsmith-timing.lock";
}

std::filesystem::path gpu_lock_path(const std::string& uuid) {
  return timing_lock_path().parent_path() / ("warpsmith-timing-" + uuid + ".lock");
}

}  // namespace warpsmith::measure

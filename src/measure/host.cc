#include "warpsmith/measure/host.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "warpsmith/base/text.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

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

#if defined(__x86_64__)
enum class FlushKind { kNone, kClflush, kClflushopt };

FlushKind flush_kind() {
  static const FlushKind kind = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 23)) != 0) return FlushKind::kClflushopt;
    if (__get_cpuid(1, &a, &b, &c, &d) != 0 && (d & (1u << 19)) != 0) return FlushKind::kClflush;
    return FlushKind::kNone;
  }();
  return kind;
}

__attribute__((target("clflushopt"))) void flush_weak(const char* begin, const char* end) {
  for (const char* line = begin; line < end; line += kLine) _mm_clflushopt(const_cast<char*>(line));
}

void flush_strong(const char* begin, const char* end) {
  for (const char* line = begin; line < end; line += kLine) _mm_clflush(line);
}
#endif

}  // namespace

DeviceFacts cpu_facts() {
  DeviceFacts facts;
  facts.kind = "cpu";
  facts.name = cpu_model();
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) == 0) facts.host = host;
  facts.cores = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  facts.load_before = load_average();
  return facts;
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

#if defined(__x86_64__)

void flush(std::span<const std::byte> memory) {
  if (memory.empty()) return;
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const char* begin = reinterpret_cast<const char*>(address / kLine * kLine);
  const char* end = reinterpret_cast<const char*>(memory.data() + memory.size());
  if (flush_kind() == FlushKind::kClflushopt) flush_weak(begin, end);
  if (flush_kind() == FlushKind::kClflush) flush_strong(begin, end);
}

void flush_fence() { _mm_mfence(); }

bool can_flush() { return flush_kind() != FlushKind::kNone; }

std::string flush_method() {
  switch (flush_kind()) {
    case FlushKind::kClflushopt:
      return "clflushopt";
    case FlushKind::kClflush:
      return "clflush";
    case FlushKind::kNone:
      break;
  }
  return "rotation";
}

#else

void flush(std::span<const std::byte>) {}
void flush_fence() {}
bool can_flush() { return false; }
std::string flush_method() { return "rotation"; }

#endif

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

}  // namespace warpsmith::measure

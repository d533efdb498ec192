#include "fingerprint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "warpsmith/base/log.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr double kTimeout = 30;  // seconds
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint32_t kSteps = 6000, kPasses = 8;

struct Pattern {
  FingerprintPattern pattern;
  const char* name;
  int capability;  // ten times that which it takes
};
using P = FingerprintPattern;
constexpr std::array<Pattern, 10> kPatterns = {{{P::kBfloat16Product, "bfloat16_product", 80},
                                                {P::kFloat16Product, "float16_product", 80},
                                                {P::kTf32Product, "tf32_product", 80},
                                                {P::kExp2, "exp2", 0},
                                                {P::kSine, "sine", 0},
                                                {P::kLog2, "log2", 0},
                                                {P::kInverseRoot, "inverse_root", 0},
                                                {P::kInverse, "inverse", 0},
                                                {P::kTanh, "tanh", 75},
                                                {P::kWarpSum, "warp_sum", 0}}};

void add_patterns(GpuHarness& harness, Fingerprint& out) {
  const device::GpuFacts& gpu = harness.gpu().facts();
  const std::uint64_t bytes = kPatternWords * sizeof(std::uint32_t);
  const device::GpuMemory words(bytes);
  const device::PinnedMemory here(bytes);
  for (const Pattern& one : kPatterns) {
    if (10 * gpu.major + gpu.minor < one.capability) continue;
    harness.kernels().make_pattern(one.pattern, words.address());
    device::download(here.data(), words.address(), bytes);
    harness.gpu().settle(kTimeout);
    out.patterns[one.name] =
        sha256_hex(std::string_view(reinterpret_cast<const char*>(here.data()), bytes)).substr(0, 16);
  }
}

void add_rates(GpuHarness& harness, const TimeEnqueued& times, Fingerprint& out) {
  const device::GpuMemory clocks(3 * sizeof(std::uint64_t));
  const auto ns = [&](bool float64) {
    return stats::median(times([&] { harness.kernels().multiply_add(float64, kSteps, clocks.address()); }));
  };
  const double wide_ns = ns(true), ns32 = ns(false);
  out.figures[kFloat64Share] = ns32 / wide_ns;
  std::uint64_t taken[2] = {};  // cycles, nanoseconds: of the last in float32
  device::download(taken, clocks.address(), sizeof taken);
  harness.gpu().settle(kTimeout);
  if (taken[1] > 0)
    out.figures[kSmClock] = static_cast<double>(taken[0]) / static_cast<double>(taken[1]) * 1e9;
}

void add_edge(GpuHarness& harness, const TimeEnqueued& times, Fingerprint& out) {
  const device::GpuFacts& gpu = harness.gpu().facts();
  if (gpu.l2_bytes < kMiB) return;
  const std::uint64_t most = 4 * gpu.l2_bytes / kMiB * kMiB;
  const device::GpuMemory memory(most);
  device::fill_bytes(memory.address(), 0x5A, most);
  std::vector<std::pair<double, double>> rates;
  for (const int eighths : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32}) {
    const std::uint64_t bytes = gpu.l2_bytes * static_cast<std::uint64_t>(eighths) / 8 / 4096 * 4096;
    const std::vector<double> ns =
        times([&] { harness.kernels().read_again(memory.address(), bytes, kPasses); });
    rates.emplace_back(static_cast<double>(bytes), static_cast<double>(bytes) * kPasses / stats::median(ns));
  }
  if (const double edge = edge_of(rates); edge > 0) out.figures[kL2Edge] = edge;
}

}  // namespace

double edge_of(const std::vector<std::pair<double, double>>& rate_of_size) {
  constexpr double kTell = 1.25;
  if (rate_of_size.size() < 2) return 0;
  // Small memory keeps few SMs busy: the fastest size stands for L2.
  const auto fastest = std::max_element(rate_of_size.begin(), rate_of_size.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  const double slow = rate_of_size.back().second;
  if (!(slow > 0) || fastest->second < kTell * slow) return 0;
  const double between = std::sqrt(fastest->second * slow);
  double edge = fastest->first;
  for (auto at = fastest; at != rate_of_size.end() && at->second >= between; ++at) edge = at->first;
  return edge;
}

Fingerprint fingerprint_of(GpuHarness& harness, const TimeEnqueued& times) {
  Fingerprint out;
  out.code = fingerprint_code();
  const auto try_part = [&](const char* what, const std::function<void()>& part) {
    try {
      part();
    } catch (const device::GpuError& e) {
      if (e.outcome().context_lost) throw;
      log_warning(std::string("the fingerprint goes without ") + what + ": " + e.what());
    } catch (const Error& e) {
      log_warning(std::string("the fingerprint goes without ") + what + ": " + e.what());
    }
  };
  try_part("bits", [&] { add_patterns(harness, out); });
  try_part("rates", [&] { add_rates(harness, times, out); });
  try_part("L2", [&] { add_edge(harness, times, out); });
  return out;
}

}  // namespace warpsmith::measure

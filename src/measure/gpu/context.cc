#include "context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "gpu_place.h"
#include "timing/judge.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr double kWidth = 0.005;
constexpr std::size_t kLeftOut = 20;  // one of so many: a clock that stepped, another clock rate
constexpr double kSameTimes = 1.25;   // those of an H200 lie within 1.14
// Contexts that were seen. Of an H200's one in eleven is as quick as the quickest.
constexpr std::size_t kFewest = 48, kFewestAlike = 12, kKept = 256;
// Then the search ends with the context at hand. Contexts differ by 1 to 2 % for calls of 10 us, which
// launches bound. For those of over 100 us, which a GPU's scores are made of, 25 ns a launch are about 0.1 %
// (computed, not measured).
constexpr double kMostSeconds = 1;
constexpr int kLaunches = 400, kRows = 5;         // the GPU's queue holds some thousand launches
constexpr double kShortest = 50, kLongest = 1e6;  // nanoseconds that may stand in the file
constexpr std::uint64_t kHoldNs = 20'000'000;

double launch_ns(const device::Gpu& gpu, std::span<const std::byte> cubin) {
  const device::GpuModule module(cubin);
  const device::GpuKernel hold = module.kernel("ws_hold"), nothing = module.kernel("ws_nothing");
  const device::PinnedMemory memory(sizeof(std::uint32_t));
  auto* released = memory.as<volatile std::uint32_t>();
  *released = 0;
  device::GpuEvent start, stop;
  std::vector<double> times;
  for (std::uint32_t row = 1; row <= kRows; ++row) {
    std::uint64_t most = kHoldNs;
    void* arguments[] = {&released, &row, &most};
    hold.launch(1, 1, arguments);
    start.record();
    for (int i = 0; i < kLaunches; ++i) nothing.launch(1, 32, nullptr);
    stop.record();
    *released = row;
    gpu.settle(10);
    times.push_back(device::GpuEvent::ns_between(start, stop) / kLaunches);
  }
  return stats::median(times);
}

std::filesystem::path seen_path(const device::GpuFacts& facts) {
  std::filesystem::path path = gpu_lock_path(facts.uuid);
  return path.replace_extension(fmt::format(".launches-{}-{}", facts.driver, ::getuid()));
}

// Anybody may have written there.
std::vector<double> read_seen(const std::filesystem::path& path) {
  std::vector<double> seen;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) > 1 << 16)
    return seen;
  try {
    std::istringstream lines(read_file(path));
    for (double ns = 0; lines >> ns;)
      if (ns >= kShortest && ns <= kLongest) seen.push_back(ns);
  } catch (const Error&) {
    seen.clear();
  }
  return seen;
}

// What was seen, also where what comes behind it throws.
class Seen {
 public:
  explicit Seen(std::filesystem::path path) : path_(std::move(path)), costs_(read_seen(path_)) {}
  ~Seen() {
    std::string text;
    const std::size_t first = costs_.size() - std::min(costs_.size(), kKept);
    for (std::size_t i = first; i < costs_.size(); ++i) text += fmt::format("{:.1f}\n", costs_[i]);
    try {
      write_file_atomic(path_, text);
    } catch (const std::exception& e) {
      log_warning(std::string("what launches cost cannot be kept: ") + e.what());
    }
  }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;
  void add(double ns) { costs_.push_back(ns); }
  const std::vector<double>& costs() const { return costs_; }

 private:
  std::filesystem::path path_;
  std::vector<double> costs_;
};

}  // namespace

std::string to_string(const LaunchCost& cost) {
  return fmt::format("{:.0f} ({:.0f} or less is quick)", cost.ns, cost.quick);
}

double quick_cost(std::vector<double> seen, double now, bool* known) {
  *known = false;
  std::erase_if(seen, [&](double ns) { return ns > now * kSameTimes || ns * kSameTimes < now; });
  if (seen.empty()) return 0;
  std::sort(seen.begin(), seen.end());
  const double quick = seen[seen.size() / kLeftOut] * (1 + kWidth);
  *known = seen.size() >= kFewest || (seen.size() >= kFewestAlike && seen.back() <= quick);
  return quick;
}

LaunchCost open_quick_context(const Settings& settings, std::span<const std::byte> cubin) {
  if (device::Gpu::has_context()) return {};
  const device::GpuFacts facts = device::Gpu().facts();
  require_gpu(settings, facts.name);
  const FileLock alone(gpu_lock_path(facts.uuid));
  const double begin = seconds_now();
  Seen seen(seen_path(facts));
  LaunchCost cost;
  for (int contexts = 1;; ++contexts) {
    seen.add(launch_ns(device::Gpu(), cubin));
    bool known = false;
    const double ns = seen.costs().back();
    cost = {ns, quick_cost(seen.costs(), ns, &known), contexts};
    if (known && cost.ns <= cost.quick) break;
    if (seconds_now() - begin > kMostSeconds) {
      log_info(fmt::format("no context of {} on {} was a quick one", contexts, facts.name));
      break;
    }
    device::Gpu::close_context();
  }
  log_info(fmt::format("a launch costs {} ns in this context, the {}. that was opened", to_string(cost),
                       cost.contexts));
  return cost;
}

}  // namespace warpsmith::measure

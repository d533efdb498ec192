// How the clock of tier `extension` scatters, by the length of its intervals: rows of calls of honest
// programs and of the baseline, each by this process's clock, and the program's by its own events.
//
//   extension_bench [NAME…]     those of datasets/*/extension/ok; nothing where there is no GPU
//
// First, what a launch takes on each processor that this process may run on, with its NUMA node and those
// that share its core; then each program twice: with both sides wherever the system puts them, and in turns
// on one processor, as tier `extension` is timed.
//
// Prints figures and judges nothing. `row`: standard deviation of the logarithm of a row's time; `bucket`:
// of the means of seven buckets, which the variance gate looks at (squared); `beside the clock`: what honest
// programs have there by chance, of which a share is never charged (extension/hack.cc).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "../hacks/program_file.h"
#include "extension/arms.h"
#include "extension/measurer.h"
#include "extension/processor.h"
#include "gpu/bench.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/measure/check.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/stats/summary.h"
#include "warpsmith/toolchain/extension.h"
#include "warpsmith/toolchain/gpu.h"
#include "warpsmith/toolchain/hosted_candidate.h"

namespace {

using namespace warpsmith;

constexpr int kRounds = 35, kBuckets = 7;
constexpr double kIntervalsNs[] = {1e6, 2e6, 5e6, 20e6};
constexpr int kMostCalls = 2048;

double deviation(const std::vector<double>& values) {
  const double mean = stats::mean(values);
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::string scatter(const std::vector<double>& times) {
  std::vector<double> logs, buckets(kBuckets, 0.0);
  for (const double t : times) logs.push_back(std::log(t));
  for (std::size_t i = 0; i < logs.size(); ++i)
    buckets[i % kBuckets] += logs[i] / static_cast<double>(logs.size() / kBuckets);
  return fmt::format("row {:5.2f} % bucket {:5.2f} %", 100 * deviation(logs), 100 * deviation(buckets));
}

// In microseconds, in the order in which they were taken.
std::string series(const std::vector<double>& times) {
  std::string text;
  for (const double t : times) text += fmt::format(" {:.0f}", t / 1e3);
  return text;
}

// Median, the second greatest and the greatest, in microseconds.
std::string extremes(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return fmt::format("{:.0f} {:.0f} {:.0f}", stats::median(times) / 1e3, times.rbegin()[1] / 1e3,
                     times.back() / 1e3);
}

// `cpu`: for both sides; -1: wherever they are put.
void look_at(measure::GpuHarness& harness, const task::Task& task, const std::string& name,
             const fs::path& binary, int cpu) {
  const measure::StayOn here(cpu);
  measure::GpuBench bench(harness, task, {.seed = 1});
  device::ExtensionOptions options;
  options.libraries = measure::library_folders();
  options.gpu = harness.gpu().facts().uuid;
  options.sandbox = process::available_sandbox();
  options.cpu = cpu;
  device::ExtensionSession empty(options);
  const measure::ExtensionOverhead overhead = measure::measure_overhead(harness, empty);
  std::printf(
      "%s (%s), %s: an empty interval %.0f ns, %.0f ns of it outside events, a look %.0f ns; a call of eager "
      "%.0f ns\n",
      name.c_str(), task.id.c_str(), cpu < 0 ? "any processor" : "one processor", overhead.interval_ns,
      overhead.outside_ns, overhead.look_ns, bench.baseline_call_ns());
  options.binary = binary;
  options.arena_bytes = task.memory_bytes;
  measure::ExtensionCandidate candidate(harness, task, device::ExtensionSession(options));
  if (const measure::Ran loaded = candidate.load(); loaded.verdict != Verdict::kOk) {
    std::printf("  %s\n", loaded.detail.c_str());
    return;
  }
  for (const double interval : kIntervalsNs) {
    const int calls =
        static_cast<int>(std::clamp(interval / bench.baseline_call_ns(), 1., double{kMostCalls}));
    measure::HostClockBaseline baseline(harness, task, bench.reference(), bench.timing_dims(), calls);
    measure::ExtensionArm arm(candidate, bench.reference(), bench.timed_bounds(), bench.timing_dims(), calls,
                              overhead);
    std::vector<double> ours, events, theirs, ratios, armed, late, values;
    for (int i = -2; i < kRounds; ++i) {
      const auto key = static_cast<std::uint64_t>(1000 + i);
      baseline.renew(2 * key, calls);
      const auto b = static_cast<double>(baseline.run(calls).elapsed_ns);
      arm.renew(2 * key + 1, calls);
      arm.forget_clocks();
      const measure::Ran ran = arm.run(calls);
      if (ran.verdict != Verdict::kOk) {
        std::printf("  %d calls: %s\n", calls, ran.detail.c_str());
        return;
      }
      if (i < 0) continue;
      theirs.push_back(b);
      ours.push_back(static_cast<double>(ran.elapsed_ns));
      const measure::ExtensionArm::Clocks clocks = arm.clocks();
      events.push_back(clocks.events_ns);
      armed.push_back(clocks.armed_ns);
      late.push_back(clocks.late_ns);
      values.push_back(clocks.values_ns);
      ratios.push_back(b / static_cast<double>(ran.elapsed_ns));
    }
    std::printf(
        "  %5.1f ms, %4d calls: eager %8.0f ns a call, %s | program %8.0f, %s | its events %8.0f, %s | ratio "
        "%.3f, %s\n",
        interval * 1e-6, calls, stats::median(theirs) / calls, scatter(theirs).c_str(),
        stats::median(ours) / calls, scatter(ours).c_str(), stats::median(events) / calls,
        scatter(events).c_str(), stats::median(ratios), scatter(ratios).c_str());
    std::printf(
        "    beside the clock, us (median, second, greatest): before it %s, behind it %s; values and flush "
        "%s, "
        "%.0f without the candidate\n",
        extremes(armed).c_str(), extremes(late).c_str(), extremes(values).c_str(),
        baseline.values_ns(calls, 1) / 1e3);
    if (interval == kIntervalsNs[0])
      std::printf("    rows in us: eager%s\n    program%s\n    its events%s\n", series(theirs).c_str(),
                  series(ours).c_str(), series(events).c_str());
    std::fflush(stdout);
  }
}

// "0-3,8", or "?".
std::string topology(int cpu, const std::string& file) {
  try {
    std::string text = read_file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + file);
    return text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return "?";
  }
}

std::string node_of(int cpu) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/cpu/cpu" + std::to_string(cpu), error))
    if (const std::string name = entry.path().filename().string(); name.starts_with("node")) return name;
  return "node ?";
}

void launches_by_cpu(const measure::GpuHarness& harness) {
  constexpr int kTimes = 15;
  for (const int cpu : process::allowed_cpus())
    if (const measure::StayOn here(cpu); here.there())
      std::printf("cpu %3d (%s, shares its core with %s): a launch takes the host %5.0f ns\n", cpu,
                  node_of(cpu).c_str(), topology(cpu, "thread_siblings_list").c_str(),
                  measure::enqueue_ns(harness, kTimes));
}

int run(const std::set<std::string>& names) {
  if (process::nvidia_gpus().empty()) {
    std::printf("no GPU here\n");
    return kExitOk;
  }
  const fs::path root = WARPSMITH_SOURCE_DIR, cache = fs::temp_directory_path() / "warpsmith-hacks";
  const char* chosen = std::getenv("WARPSMITH_BENCH_TARGET");
  const std::string target = chosen != nullptr ? chosen : "sm_90a";
  toolchain::CompileOptions compiling;
  compiling.cache = cache;
  compiling.unsandboxed = true;
  compiling.timeout_s = 120;
  measure::load_torch_cuda();
  const device::Gpu gpu;
  measure::configure_torch(1);
  const measure::ValueSource values;
  measure::GpuHarness harness(gpu, measure::harness_cubin(target, cache, true), values);
  launches_by_cpu(harness);
  const std::optional<measure::Processor> processor = measure::Processor::claim(harness);
  if (processor) std::printf("one processor: %d\n", processor->number());
  Diagnostics mistakes;
  const std::vector<task::Task> tasks = task::load_tasks(root / "datasets", mistakes);
  for (const task::Task& task : tasks)
    for (const task::HostedSource& source :
         task::load_hosted_sources(task, task::HostedTier::kExtension, mistakes)) {
      if (source.expected != "ok" || (!names.empty() && !names.contains(source.name))) continue;
      const toolchain::CompileResult made =
          toolchain::compile_extension(toolchain::make_hosted_candidate(task.id, source, {}), task,
                                       *toolchain::parse_gpu_target(target), compiling);
      if (made.verdict != Verdict::kOk) throw Error(source.name + ": " + made.log);
      look_at(harness, task, source.name, made.binary, -1);
      if (processor) look_at(harness, task, source.name, made.binary, processor->number());
    }
  if (!mistakes.empty()) throw InvalidInput(mistakes);
  return kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  start_logging("extension_bench");
  try {
    process::become_subreaper();
    return run(std::set<std::string>(argv + 1, argv + argc));
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  }
}

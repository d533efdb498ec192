#include "dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "warpsmith/base/error.h"
#include "warpsmith/toolchain/extension.h"

namespace warpsmith::gpu_bench {

namespace fs = std::filesystem;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void compile(Bench& bench) {
  const auto target = toolchain::parse_gpu_target(bench.target);
  toolchain::CompileOptions options;
  options.cache = bench.cache;
  options.unsandboxed = true;
  toolchain::CompileOptions with_headers = options;
  with_headers.timeout_s = 300;  // torch's
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  const double begin = now();
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (std::size_t n = next++; n < bench.entries.size(); n = next++) {
        Entry& e = bench.entries[n];
        e.compiled = e.candidate.tier == Tier::kPlan
                         ? toolchain::compile_for_gpu(e.candidate, *e.task, *target, options)
                         : toolchain::compile_extension(e.candidate, *e.task, *target, with_headers);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("%zu candidates compiled for %s in %.1f s\n", bench.entries.size(), bench.target.c_str(),
              now() - begin);
}

Bench open_bench(const fs::path& datasets, const std::string& shapes) {
  Bench bench;
  bench.datasets = fs::absolute(datasets);
  bench.cache = fs::temp_directory_path() / "warpsmith-gpu-bench";
  Diagnostics diagnostics;
  bench.tasks = task::load_tasks(bench.datasets, diagnostics);
  for (task::Task& t : bench.tasks) t = task::on_device(std::move(t), shapes);
  for (const task::Task& t : bench.tasks)
    for (const task::CandidateFile& file : task::load_candidate_files(t, diagnostics))
      bench.entries.push_back({&t, file.name, file.expected, make_plan_candidate(t.id, file.source, {}), {}});
  if (!diagnostics.empty()) throw InvalidInput(diagnostics);
  bench.settings = measure::settings_from_json({{"device_kind", "gpu"},
                                                {"device_names", Json::array()},
                                                {"target", 0.005},
                                                {"budget_s", 2},
                                                {"unsandboxed", true}},
                                               0);
  bench.settings.ceilings = bench.cache / "ceilings";
  const char* target = std::getenv("WARPSMITH_BENCH_TARGET");
  bench.target = target != nullptr ? target : "sm_90a";
  return bench;
}

int surprises_of_compiler(const Bench& bench) {
  int surprises = 0;
  for (const Entry& e : bench.entries) {
    if (e.compiled.verdict == Verdict::kOk || e.expected == to_string(e.compiled.verdict)) continue;
    ++surprises;
    std::printf("SURPRISE %s/%s: %s %s\n", e.task->id.c_str(), e.name.c_str(),
                std::string(to_string(e.compiled.verdict)).c_str(), e.compiled.log.c_str());
  }
  return surprises;
}

std::string number_of(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "?";
}

std::string line_of(const Measurement& m) {
  if (m.rounds == 0) return fmt::format("{} {}", to_string(m.verdict), m.detail);
  return fmt::format(
      "{} {:.4f} [{:.4f}, {:.4f}] {:.0f} (alone {}) / {:.0f} ns, {} rounds of {} ({} thrown away), held {} "
      "s, "
      "timed {} s, roofline {} ns ({}) {}",
      to_string(m.verdict), m.speedup, m.speedup_low, m.speedup_high, m.baseline_ns,
      number_of(m.baseline_alone_ns, 0), m.candidate_ns, m.rounds, m.batch, m.rounds_thrown_away,
      number_of(m.gpu_held_s, 4), number_of(m.gpu_timed_s, 4), number_of(m.roofline_ns, 0), m.roofline_bound,
      m.detail);
}

void print_gpu(const Measurement& m) {
  static bool printed = false;
  if (printed || !m.device) return;
  printed = true;
  std::printf("GPU: %s %s, driver %s\n", m.device->name.c_str(), m.device->uuid.c_str(),
              m.device->driver.c_str());
}

std::string wanted_of(const Entry& e) { return e.expected == "wrong_hidden" ? "wrong_output" : e.expected; }

std::vector<const Entry*> good_ones(const Bench& bench) {
  std::vector<const Entry*> good;
  for (const Entry& e : bench.entries)
    if (e.expected == "ok" && e.compiled.verdict == Verdict::kOk) good.push_back(&e);
  return good;
}

std::vector<std::string> ids_of(const Bench& bench) {
  std::vector<std::string> ids;
  for (const task::Task& t : bench.tasks) ids.push_back(t.id);
  return ids;
}

}  // namespace warpsmith::gpu_bench

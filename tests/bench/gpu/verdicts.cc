#include "verdicts.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>

#include "warpsmith/base/error.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::gpu_bench {

bool all(Bench& bench, measure::GpuWorkers& workers) {
  std::vector<double> held;
  int wrong = surprises_of_compiler(bench);
  const double begin = now();
  for (const Entry& e : bench.entries) {
    if (e.compiled.verdict != Verdict::kOk) continue;
    Measurement m = workers.measure(e.candidate, e.compiled.binary).measurement;
    print_gpu(m);
    const std::string wanted = wanted_of(e);
    const bool surprise = wanted != to_string(m.verdict);
    wrong += surprise;
    std::printf("%s%-24s %-24s %s idle %s %s host_bound %s\n", surprise ? "SURPRISE " : "",
                e.task->id.c_str(), e.name.c_str(), line_of(m).c_str(),
                number_of(m.baseline_idle_ns, 0).c_str(), number_of(m.candidate_idle_ns, 0).c_str(),
                m.host_bound ? (*m.host_bound ? "yes" : "no") : "?");
    std::fflush(stdout);
    if (m.gpu_held_s) held.push_back(*m.gpu_held_s);
  }
  double sum = 0;
  for (const double h : held) sum += h;
  std::printf(
      "all: %zu measured in %.1f s, %d not as expected, %d processes lost; GPU held median %.3f s, mean %.3f "
      "s\n",
      held.size(), now() - begin, wrong, workers.lost(), stats::median(held),
      sum / static_cast<double>(held.size()));
  return wrong == 0;
}

// For compute-sanitizer: every kind of launch and copy of the harness around every right candidate, and few
// rounds of each.
bool few_rounds(Bench& bench, measure::GpuMeasurer& measurer) {
  int fine = 0, all = 0;
  const char* limit = std::getenv("WARPSMITH_BENCH_A_TASK");
  const int most = limit != nullptr ? std::atoi(limit) : std::numeric_limits<int>::max();
  std::map<std::string, int> taken;  // by task
  for (const Entry* e : good_ones(bench)) {
    if (++taken[e->task->id] > most) continue;
    const double begin = now();
    const Measurement m = measurer.measure(*e->task, e->candidate, e->compiled.binary).measurement;
    if (measurer.lost())
      throw Error("the GPU's context is lost: " + e->task->id + "/" + e->name + ": " + m.detail);
    // Under a tool that slows everything down, what a time is worth does not matter.
    const bool measured = m.rounds > 0;
    fine += measured;
    ++all;
    std::printf("%-24s %-24s %s%s %s, %.1f s\n", e->task->id.c_str(), e->name.c_str(),
                measured ? "" : "NOT TIMED: ", std::string(to_string(m.verdict)).c_str(), m.detail.c_str(),
                now() - begin);
    std::fflush(stdout);
  }
  std::printf("few: %d of %d right candidates were timed\n", fine, all);
  return all > 0 && fine == all && surprises_of_compiler(bench) == 0;
}

// What is right must be so each time: order of atomics and chance of timing included.
bool repeat_checks(Bench& bench, measure::GpuMeasurer& measurer) {
  const char* times = std::getenv("WARPSMITH_BENCH_TIMES");
  const int repeats = times != nullptr ? std::atoi(times) : 20;
  constexpr double kNear = 0.5;
  int failed = surprises_of_compiler(bench), near = 0;
  const std::vector<const Entry*> good = good_ones(bench);
  for (const Entry* e : good) {
    double worst = 0;
    for (int i = 0; i < repeats; ++i) {
      const Measurement m = measurer.measure(*e->task, e->candidate, e->compiled.binary).measurement;
      if (m.error_bound > 0) worst = std::max(worst, m.max_error / m.error_bound);
      if (m.verdict == Verdict::kOk) continue;
      ++failed;
      std::printf("%s %s: %s\n", e->task->id.c_str(), e->name.c_str(), line_of(m).c_str());
    }
    if (worst < kNear) continue;
    ++near;
    std::printf("%-24s %-24s error up to %.2f of its bound\n", e->task->id.c_str(), e->name.c_str(), worst);
    std::fflush(stdout);
  }
  std::printf(
      "checks: %zu right candidates, %d times each: %d times not ok, %d candidates within half of their "
      "bound\n",
      good.size(), repeats, failed, near);
  return failed == 0 && !good.empty();
}

namespace {

constexpr const char* kLooping =
    "// plan: launch k<<<1, 32>>>(out)\n"
    "extern \"C\" __global__ void k(float* out) { volatile int go = 1; while (go) { out[0] += 1.f; } }\n";
constexpr const char* kCrashing =
    "// plan: launch k<<<1, 32>>>(out)\n"
    "extern \"C\" __global__ void k(float* out) { out[1ll << 40] = 1.f; }\n";

}  // namespace

void add_bad_ones(Bench& bench, std::size_t count) {
  std::size_t made = 0;
  for (std::size_t i = 0; made < count; ++i) {
    const task::Task& t = bench.tasks[i % bench.tasks.size()];
    if (t.outputs.size() != 1 || t.outputs[0].name != "out") continue;
    const std::string comment = "// " + std::to_string(i) + "\n";
    bench.entries.push_back({&t,
                             made % 2 == 0 ? "loops" : "crashes",
                             made % 2 == 0 ? "timeout" : "out_of_bounds",
                             make_plan_candidate(t.id, (made % 2 == 0 ? kLooping : kCrashing) + comment, {}),
                             {}});
    ++made;
  }
}

std::size_t throughput_candidates() {
  const char* all = std::getenv("WARPSMITH_BENCH_CANDIDATES");
  return all != nullptr ? std::strtoul(all, nullptr, 10) : 500;
}

bool throughput(Bench& bench, measure::GpuWorkers& workers) {
  std::vector<const Entry*> order;
  std::vector<const Entry*> bad, fine;
  for (const Entry& e : bench.entries)
    if (e.compiled.verdict == Verdict::kOk)
      (e.expected == "timeout" || e.expected == "out_of_bounds" ? bad : fine).push_back(&e);
  if (fine.empty()) throw Error("no candidate compiles");
  // Of every task where not all have a place.
  const std::size_t good = std::max(bad.size(), throughput_candidates()) - bad.size(),
                    every = std::max<std::size_t>(1, fine.size() / std::max<std::size_t>(1, good));
  for (std::size_t i = 0; i < good; ++i) order.push_back(fine[i * every % fine.size()]);
  order.insert(order.end(), bad.begin(), bad.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry* a, const Entry* b) { return a->task->id < b->task->id; });
  std::vector<double> held;
  std::map<std::string, int> verdicts;
  bool after_bad = false;
  int again = 0, wrong = surprises_of_compiler(bench);
  double around_bad = 0;  // seconds that went into bad ones and the one behind each
  const double begin = now();
  for (const Entry* e : order) {
    const double start = now();
    Measurement m = workers.measure(e->candidate, e->compiled.binary).measurement;
    const bool is_bad = e->expected == "timeout" || e->expected == "out_of_bounds";
    if (is_bad || after_bad) around_bad += now() - start;
    print_gpu(m);
    ++verdicts[std::string(to_string(m.verdict))];
    again += m.remeasured > 0;
    if (m.gpu_held_s) held.push_back(*m.gpu_held_s);
    const bool surprise = to_string(m.verdict) != wanted_of(*e);
    wrong += surprise;
    if (is_bad || after_bad || surprise)
      std::printf("%s%s %s: %s (%.2f s)\n", surprise ? "SURPRISE " : "", e->task->id.c_str(), e->name.c_str(),
                  line_of(m).c_str(), now() - start);
    after_bad = is_bad;
    std::fflush(stdout);
  }
  const double seconds = now() - begin;
  double sum = 0;
  for (const double h : held) sum += h;
  std::printf(
      "throughput: %zu candidates in %.1f s, %.1f a second; GPU held median %.3f s, mean %.3f s; processes "
      "lost %d\n",
      order.size(), seconds, static_cast<double>(order.size()) / seconds, stats::median(held),
      sum / static_cast<double>(held.size()), workers.lost());
  std::printf("  bad ones, and the one behind each: %.1f s; measured again by another process: %d\n",
              around_bad, again);
  for (const auto& [verdict, count] : verdicts) std::printf("  %s: %d\n", verdict.c_str(), count);
  std::printf("  not as expected: %d\n", wrong);
  return wrong == 0;
}

}  // namespace warpsmith::gpu_bench

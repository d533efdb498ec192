#include "warpsmith/measure/baselines.h"

#include <fmt/format.h>

#include "timing/judge.h"
#include "warpsmith/stats/ratio.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

const std::vector<std::string>& baseline_names() {
  static const std::vector<std::string> names = {"eager", "cuda_graph", "torch_compile",
                                                 "torch_compile_reduce_overhead", "cudnn"};
  return names;
}

BaselineTiming blank_timing(const Settings& settings, const task::Task& task, const std::string& name) {
  BaselineTiming timing;
  timing.task = task.id;
  timing.name = name;
  timing.math = settings.math;
  timing.device_kind = settings.device_kind;
  for (const std::string& dim : task.dims) timing.shape.emplace_back(dim, task.timing.front().at(dim));
  return timing;
}

void write_pair(const Settings& settings, const PairResult& pairs, int calls, BaselineTiming& timing) {
  timing.state = BaselineState::kMissing;
  if (pairs.verdict != Verdict::kOk) {
    timing.reason = fmt::format("{}: {}", to_string(pairs.verdict), pairs.detail);
    return;
  }
  const stats::Score score = judge(settings, pairs, calls).score;
  timing.variance = score.variance;
  if (const double gate = stats::variance_gate(settings.protocol); score.variance > gate) {
    timing.reason =
        fmt::format("unstable: the variance between buckets is {:.2g}, over {:.2g}", score.variance, gate);
    return;
  }
  timing.state = BaselineState::kCovered;
  timing.reason.clear();
  timing.ratio = score.speedup();
  timing.low = score.low();
  timing.high = score.high();
  timing.imprecise = score.half_width > settings.protocol.target;
  timing.eager_ns = stats::median(to_doubles(pairs.baseline_ns));
  timing.baseline_ns = stats::median(to_doubles(pairs.candidate_ns));
  timing.rounds = score.rounds;
  timing.batch = calls;
}

void divide(Measurement& m, const BaselineTiming& baseline) {
  m.baseline = baseline.name;
  if (m.rounds == 0) return;
  if (baseline.state != BaselineState::kCovered) {
    const bool right = m.verdict == Verdict::kOk;
    m.rounds = 0;  // numbers over eager would be taken for such over the baseline
    if (!right) return;
    m.verdict = Verdict::kNotMeasured;
    m.detail = fmt::format("there is no baseline `{}`: {}", baseline.name, baseline.reason);
    return;
  }
  const stats::Ratio speedup = stats::divided({m.speedup, m.speedup_low, m.speedup_high},
                                              {baseline.ratio, baseline.low, baseline.high});
  m.speedup = speedup.value;
  m.speedup_low = speedup.low;
  m.speedup_high = speedup.high;
  m.speedup_rounded = stats::round_toward_one(m.speedup);
  m.baseline_ns /= baseline.ratio;
  m.baseline_ratio = baseline.ratio;
  m.imprecise = m.imprecise || baseline.imprecise;
}

}  // namespace warpsmith::measure

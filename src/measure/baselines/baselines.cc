#include "warpsmith/measure/baselines.h"

#include <fmt/format.h>

#include <cstdlib>

#include "timing/judge.h"
#include "warpsmith/base/random.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/stats/ratio.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr int kCacheVersion = 5;  // of rows in the cache: raised when a baseline is timed in another way

}  // namespace

BaselineTiming blank_timing(const Settings& settings, const task::Task& task, const std::string& name) {
  BaselineTiming timing;
  timing.task = task.id;
  timing.name = name;
  timing.math = task::math_of(task, settings.math);
  timing.device_kind = settings.device_kind;
  for (const std::string& dim : task.dims) timing.shape.emplace_back(dim, task.timing.front().at(dim));
  return timing;
}

std::string cache_key(const Settings& s, const task::Task& task, const std::string& name) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const Json key = {{"version", kCacheVersion},
                    {"task", task.digest},
                    {"baseline", name},
                    {"math", task::math_of(task, s.math)},
                    {"device", s.device_kind},
                    {"names", s.device_names},
                    {"gpus", visible != nullptr ? visible : ""},
                    {"host", process::host_name()},
                    {"torch", torch_facts().at("torch")},
                    {"threads", s.threads},
                    {"protocol",
                     {s.protocol.buckets, s.protocol.rounds_a_bucket, s.protocol.target,
                      s.protocol.variance_gate, s.budget_s}}};
  return sha256_hex(key.dump()).substr(0, 32);
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

void write_steady_pair(const Settings& settings, PairSettings& pairs, const std::function<PairResult()>& take,
                       BaselineTiming& timing) {
  constexpr int kTries = 2;
  const double gate = stats::variance_gate(settings.protocol);
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) pairs.key = random_key({pairs.key, name_key("once more")});
    timing.variance = 0;
    write_pair(settings, take(), pairs.candidate_calls, timing);
    if (timing.state == BaselineState::kCovered || timing.variance <= gate) return;
  }
}

void divide(Measurement& m, const BaselineTiming& baseline) {
  m.baseline = baseline.name;
  const bool covered = baseline.state == BaselineState::kCovered;
  if (m.speedup_before && covered) *m.speedup_before /= baseline.ratio;
  if (!covered) m.speedup_before.reset();
  if (m.rounds == 0) return;
  if (!covered) {
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

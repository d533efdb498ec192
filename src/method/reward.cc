#include "warpsmith/method/reward.h"

#include <algorithm>
#include <cmath>

#include "warpsmith/base/error.h"

namespace warpsmith::method {

Outcome outcome_of(const Measurement& m) {
  if (m.verdict == Verdict::kUnsupported || m.verdict == Verdict::kNotMeasured ||
      m.verdict == Verdict::kUnstable)
    return Outcome::kLeftOut;
  if (m.verdict != Verdict::kOk) return Outcome::kFailure;
  if (!(m.speedup > 0) || !std::isfinite(m.speedup)) return Outcome::kLeftOut;
  const double half = std::max(m.speedup_high - m.speedup, m.speedup - m.speedup_low);
  return half > kWidestRewardedInterval * m.speedup ? Outcome::kLeftOut : Outcome::kValid;
}

RewardKind parse_reward_kind(std::string_view name) {
  if (name == "log") return RewardKind::kLog;
  if (name == "raw") return RewardKind::kRaw;
  throw Error("unknown reward `" + std::string(name) + "` (log or raw)", kExitUsage);
}

double reward_of(double rounded_score, RewardKind kind) {
  const double score = std::max(rounded_score, 0.01);
  return kind == RewardKind::kLog ? std::log(score) : score;
}

RewardSmoother::RewardSmoother(SmoothingSettings settings) : settings_(settings) {
  if (settings.window < 1 || !(settings.clip > 0))
    throw Error("smoothing needs a window and a clip above 0", kExitUsage);
}

void RewardSmoother::add(const std::string& task, int iteration, const std::vector<double>& rewards) {
  std::deque<Iteration>& window = tasks_[task];
  if (window.empty() || window.back().number != iteration) window.push_back({iteration, {}});
  std::vector<double>& current = window.back().rewards;
  current.insert(current.end(), rewards.begin(), rewards.end());
  while (window.front().number <= iteration - settings_.window) window.pop_front();
}

double RewardSmoother::mean(const std::string& task) const {
  double sum = 0, n = 0;
  if (const auto it = tasks_.find(task); it != tasks_.end())
    for (const Iteration& iteration : it->second)
      for (const double r : iteration.rewards) sum += r, n += 1;
  return n > 0 ? sum / n : 0;
}

double RewardSmoother::deviation(const std::string& task) const {
  const double mu = mean(task);
  double sum = 0, n = 0;
  if (const auto it = tasks_.find(task); it != tasks_.end())
    for (const Iteration& iteration : it->second)
      for (const double r : iteration.rewards) sum += (r - mu) * (r - mu), n += 1;
  return n > 0 ? std::sqrt(sum / n) : 0;
}

double RewardSmoother::smooth(const std::string& task, double reward) const {
  const double sigma = deviation(task);
  if (sigma < 1e-9) return 0;
  return std::clamp((reward - mean(task)) / sigma, -settings_.clip, settings_.clip);
}

double RewardSmoother::failure(const std::string& task, double margin) const {
  double lowest = INFINITY;
  if (const auto it = tasks_.find(task); it != tasks_.end())
    for (const Iteration& iteration : it->second)
      for (const double r : iteration.rewards) lowest = std::min(lowest, r);
  if (std::isinf(lowest)) return -settings_.clip;
  return std::min(-settings_.clip, smooth(task, lowest) - margin);
}

std::optional<Advantages> group_advantages(const std::vector<std::optional<double>>& rewards) {
  double sum = 0, n = 0;
  for (const auto& r : rewards)
    if (r) sum += *r, n += 1;
  if (n < 2) return std::nullopt;
  const double mean = sum / n;
  double squares = 0;
  for (const auto& r : rewards)
    if (r) squares += (*r - mean) * (*r - mean);
  const double deviation = std::sqrt(squares / n);
  if (deviation < 1e-9) return std::nullopt;
  Advantages out;
  for (const auto& r : rewards) out.push_back(r ? std::optional((*r - mean) / deviation) : std::nullopt);
  return out;
}

}  // namespace warpsmith::method

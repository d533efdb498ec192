#include "warpsmith/method/reward.h"

#include <algorithm>
#include <cmath>

#include "warpsmith/base/error.h"

namespace warpsmith::method {

Outcome outcome_of(const Measurement& m, double widest) {
  if (m.verdict == Verdict::kUnsupported || m.verdict == Verdict::kNotMeasured ||
      m.verdict == Verdict::kUnstable)
    return Outcome::kLeftOut;
  if (m.verdict != Verdict::kOk) return Outcome::kFailure;
  if (!(m.speedup > 0) || !std::isfinite(m.speedup)) return Outcome::kLeftOut;
  const double half = std::max(m.speedup_high - m.speedup, m.speedup - m.speedup_low);
  return half > widest * m.speedup ? Outcome::kLeftOut : Outcome::kValid;
}

RewardKind parse_reward_kind(std::string_view name) {
  if (name == "log") return RewardKind::kLog;
  if (name == "raw") return RewardKind::kRaw;
  if (name == "milestones") return RewardKind::kMilestones;
  throw Error("unknown reward `" + std::string(name) + "` (log, raw or milestones)", kExitUsage);
}

double reward_of(double rounded_score, RewardKind kind) {
  const double score = std::max(rounded_score, 0.01);
  return kind == RewardKind::kLog ? std::log(score) : score;
}

double milestone_of(double over_eager, std::optional<double> best_ratio) {
  if (over_eager < kMilestoneFactor) return 1;
  return !best_ratio || over_eager < kMilestoneFactor * *best_ratio ? 2 : 3;
}

double over_eager(const Measurement& m) {
  return m.baseline_ratio > 0 ? m.speedup_rounded * m.baseline_ratio : m.speedup_rounded;
}

double less_length(double reward, double penalty, std::int64_t tokens, std::int64_t max_tokens) {
  if (!(penalty >= 0) || !std::isfinite(penalty) || max_tokens < 1)
    throw Error("a penalty for length needs a factor of 0 or more and a longest answer", kExitUsage);
  return reward - penalty * std::min(1.0, static_cast<double>(tokens) / static_cast<double>(max_tokens));
}

double less_libraries(double reward, double penalty, std::optional<double> own_share) {
  if (!(penalty >= 0) || !std::isfinite(penalty))
    throw Error("a penalty for kernels of libraries needs a factor of 0 or more", kExitUsage);
  return reward - penalty * (1 - own_share.value_or(1));
}

std::vector<Rewards> discounted(const std::vector<Rewards>& samples, double discount) {
  if (!(discount >= 0 && discount <= 1)) throw Error("a discount of turns lies from 0 to 1", kExitUsage);
  double sum = 0, n = 0;
  for (const Rewards& turns : samples)
    for (const auto& r : turns)
      if (r) sum += *r, n += 1;
  const double mean = n > 0 ? sum / n : 0;
  std::vector<Rewards> out;
  for (const Rewards& turns : samples) {
    Rewards& returns = out.emplace_back(turns.size());
    double later = 0;
    for (std::size_t i = turns.size(); i-- > 0;) {
      later = (turns[i] ? *turns[i] - mean : 0) + discount * later;
      if (turns[i]) returns[i] = later;
    }
  }
  return out;
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

namespace {

struct Spread {
  double mean = 0, deviation = 0, n = 0;
};

// Of the rewards that there are; nothing where they cannot be compared.
std::optional<Spread> spread_of(const Rewards& rewards) {
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
  return Spread{mean, deviation, n};
}

}  // namespace

std::optional<Advantages> group_advantages(const Rewards& rewards) {
  const auto spread = spread_of(rewards);
  if (!spread) return std::nullopt;
  Advantages out;
  for (const auto& r : rewards)
    out.push_back(r ? std::optional((*r - spread->mean) / spread->deviation) : std::nullopt);
  return out;
}

std::optional<Advantages> leave_one_out_advantages(const Rewards& rewards) {
  const auto spread = spread_of(rewards);
  if (!spread) return std::nullopt;
  Advantages out;
  for (const auto& r : rewards)  // r - (sum - r) / (n - 1)
    out.push_back(r ? std::optional((*r - spread->mean) * spread->n / (spread->n - 1)) : std::nullopt);
  return out;
}

AdvantageKind parse_advantage_kind(std::string_view name) {
  if (name == "group") return AdvantageKind::kGroup;
  if (name == "leave_one_out") return AdvantageKind::kLeaveOneOut;
  throw Error("unknown advantage `" + std::string(name) + "` (group or leave_one_out)", kExitUsage);
}

std::optional<Advantages> advantages_of(const Rewards& rewards, AdvantageKind kind) {
  return kind == AdvantageKind::kGroup ? group_advantages(rewards) : leave_one_out_advantages(rewards);
}

}  // namespace warpsmith::method

// From measurements to GRPO advantages: CUDA-L1's (CUDA-L1.md, "Reward", "Smoothing", "GRPO"), and beside
// them those of its neighbours.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/records/measurement.h"

namespace warpsmith::method {

// What a measurement is worth to the learner.
enum class Outcome {
  kValid,    // a score that may be a reward
  kFailure,  // says something bad about the program: rewarded below every valid score of its task
  kLeftOut   // says nothing that may be learned: unsupported, not_measured, unstable, interval too wide
};
// Half width of the interval of a score, as a share of the score, above which it is no reward.
inline constexpr double kWidestRewardedInterval = 0.05;
Outcome outcome_of(const Measurement& measurement, double widest = kWidestRewardedInterval);

enum class RewardKind { kLog, kRaw, kMilestones };
RewardKind parse_reward_kind(std::string_view name);  // "log", "raw", "milestones"; throws Error
// Reward of a score that is rounded to two decimals, for kLog and kRaw. Scores below 0.01 count as 0.01 (log
// 0 is no reward).
double reward_of(double rounded_score, RewardKind kind);

// Milestones of CUDA Agent (arXiv 2602.24286): 1 for a right program, 2 for one that is faster than eager by
// 5 %, 3 for one that is also faster by 5 % than the best other baseline of its task. A failure gets
// kFailedMilestone. `best_ratio`: time of eager / time of the best other baseline, 1 where there is none but
// eager; nothing: it is not known, and 2 is the most.
inline constexpr double kMilestoneFactor = 1.05, kFailedMilestone = -1;
double milestone_of(double over_eager, std::optional<double> best_ratio);
// The rounded score over eager, also where the score is over another baseline.
double over_eager(const Measurement& measurement);

// CUDA-L2: the reward, less `penalty` times the share of the longest answer that this one took. Throws Error
// where the penalty is negative or no number, or there is no longest answer.
double less_length(double reward, double penalty, std::int64_t tokens, std::int64_t max_tokens);

// Dr. Kernel, as a loss: the reward, less `penalty` times the share of its kernels' time that a program
// spends in kernels which are not its own (Measurement::own_share). Where that is not known, the reward as it
// is. Throws Error where the penalty is negative or no number.
double less_libraries(double reward, double penalty, std::optional<double> own_share);

using Rewards = std::vector<std::optional<double>>;  // nothing: it has none, and teaches nothing

// What a turn is worth with those behind it, r_t + γ r_{t+1} + γ² r_{t+2} + … (Kevin, arXiv 2507.11948), r
// the rewards less their mean over all turns of the group: our failures are below 0, and sums of fewer terms
// would be better for that alone. `samples`: of one group, each with its turns in order. A turn without a
// reward adds nothing to earlier ones. Throws Error unless γ is from 0 to 1.
std::vector<Rewards> discounted(const std::vector<Rewards>& samples, double discount);

struct SmoothingSettings {
  double clip = 1.5;  // k
  int window = 100;   // iterations over which μ and σ roll
};

// r' = clip((r − μ)/σ, −k, k). μ and σ (of the population) roll over the valid rewards of the last `window`
// iterations, the current one included. They are kept for each task on its own: tasks whose speedups lie
// apart would otherwise be clipped to one value each, and a group whose rewards are equal teaches nothing.
// Iteration 0 is what was known before.
class RewardSmoother {
 public:
  explicit RewardSmoother(SmoothingSettings settings);
  // Valid rewards of one iteration; iterations must not decrease.
  void add(const std::string& task, int iteration, const std::vector<double>& rewards);
  // 0 where all rewards in the window are equal (σ = 0) or there are none.
  double smooth(const std::string& task, double reward) const;
  double mean(const std::string& task) const;
  double deviation(const std::string& task) const;
  // Smoothed reward of a failure: min(−k, lowest valid r' of the task in the window − margin).
  double failure(const std::string& task, double margin) const;

 private:
  struct Iteration {
    int number = 0;
    std::vector<double> rewards;
  };
  SmoothingSettings settings_;
  std::map<std::string, std::deque<Iteration>> tasks_;
};

// (r' − mean)/std within a group, the standard deviation that of the population. `rewards`: nothing where a
// sample is left out; the same positions have no advantage. Nothing at all where the group is to be skipped:
// fewer than two rewards, or all equal (within 1e-9).
using Advantages = std::vector<std::optional<double>>;
std::optional<Advantages> group_advantages(const Rewards& rewards);

// Dr. Kernel: r' less the mean of the others' rewards, not divided by a deviation. Nothing where
// group_advantages() is nothing.
std::optional<Advantages> leave_one_out_advantages(const Rewards& rewards);

enum class AdvantageKind { kGroup, kLeaveOneOut };
AdvantageKind parse_advantage_kind(std::string_view name);  // "group", "leave_one_out"; throws Error
std::optional<Advantages> advantages_of(const Rewards& rewards, AdvantageKind kind);

}  // namespace warpsmith::method

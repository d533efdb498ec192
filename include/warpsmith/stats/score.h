// The score of paired rounds, its interval, the variance gate and the stopping rule. Pure functions of
// numbers.
//
// A round times the baseline and the candidate once each; its log ratio is log(baseline / candidate).
// Logarithms, because under noise the mean of ratios lies above 1 for equal programs, and the mean of log
// ratios does not. The rounds, in the order in which they were taken, are cut into `buckets` blocks of equal
// length (so that a drift of the host shows as a difference between buckets); the score is the median of the
// bucket means (CUDA-L1; a disturbance spoils one bucket, not the score), or of their medians
// (Protocol::bucket_medians).
//
// Interval (95 %): median ± c·sqrt(V / buckets), V the sample variance of the bucket means. It is the t
// interval of batch means, which holds also where neighbouring rounds are correlated (a t interval over the
// rounds would be too narrow there), with c instead of t's quantile because the centre is the median and not
// the mean. c was found by simulation of normal buckets (2 million each) and the test simulates it
// again: 2.77 for seven buckets, where the mean would need 2.45.
//
// Stopping: looked at after `minimum` rounds, then after every quarter more. Looking often and stopping when
// the interval happens to be narrow makes it too narrow; so a score that was stopped at a later look has at
// least the target as its half width. In simulations (normal, correlated, contaminated noise) the interval
// then covers the truth in 93 to 96 % of cases.
//
// Gate: a target of ±h implies V = buckets·(h/c)², and the default gate is ten times that (0.00091 for ±1 %
// and seven buckets, 0.00023 for ±0.5 %; the paper's 0.005 is that of ±2.3 %). It is the same as an interval
// wider than sqrt(10) times the target.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace warpsmith::stats {

// log(baseline / candidate) of each round; both positive and of equal length.
std::vector<double> log_ratios(std::span<const std::int64_t> baseline_ns,
                               std::span<const std::int64_t> candidate_ns);

// Means, or medians, of `buckets` consecutive blocks. values.size() must be a positive multiple of `buckets`.
std::vector<double> bucket_means(std::span<const double> values, int buckets);
std::vector<double> bucket_medians(std::span<const double> values, int buckets);

// c above; buckets within [3, 31].
double interval_factor(int buckets);

struct Protocol {
  int buckets = 7;
  int rounds_a_bucket = 5;  // at the least
  double target = 0.01;     // half width of the interval at which to stop, in log units (0.01: ±1 %)
  // Rounds go on until the interval is this share of the target. Below 1 where rounds are cheap: the same
  // program measured again then lies within the target of the first time more often.
  double stop_at = 1;
  // For so many rounds; after them the target itself is enough, for on a noisy machine a little more is known
  // for many more rounds.
  int fine_rounds = std::numeric_limits<int>::max();
  double variance_gate = 0;  // 0: ten times what the target implies
  // A bucket counts by the median of its rounds, not by their mean: for a clock that a busy host disturbs in
  // every bucket, where a mean follows the disturbed rounds.
  bool bucket_medians = false;
  double give_up_below =
      0;  // a speedup: of a candidate that is surely slower no more than this need be known; 0: never
};
// Throws std::invalid_argument naming the field that makes no sense.
void check(const Protocol& protocol);

double variance_gate(const Protocol& protocol);
// The variance between `buckets` buckets that belongs to an interval of this half width (log units).
double variance_of(double half_width, int buckets);

struct Score {
  double log_score = 0;   // median of the bucket means
  double half_width = 0;  // of the 95 % interval, in log units
  double variance = 0;    // between the bucket means
  int rounds = 0;
  double speedup() const;
  double low() const;
  double high() const;
};

// `ratios`: all rounds so far, a multiple of `buckets`, at least `buckets`.
Score score_of(std::span<const double> ratios, const Protocol& protocol);

// Rounds to have before the first look (taken = 0), and before the next look after `taken` rounds, of which
// some may have been thrown away: multiples of `buckets`, above `taken`.
int next_look(int taken, const Protocol& protocol);
// Whether no more need be known of a candidate: a multiple of `buckets` rounds is there, the interval lies
// below give_up_below, and its half width is at most kWidestOfTheSlow, or, once there are kRoundsOfTheSlow
// times the rounds of the first look, kWidestReward. `last`: there will be no more rounds, so kWidestReward
// is enough.
bool slow_enough(std::span<const double> ratios, const Protocol& protocol, bool last = false);
inline constexpr double kWidestReward = 0.05;  // half width, in log units: what may still be a reward
inline constexpr double kWidestOfTheSlow = 0.007;
inline constexpr double kRoundsOfTheSlow = 1.4;
// Half width (95 %, log units) of the mean of `ratios` as far as it hangs on which groups there were: rounds
// of one group share what they are drawn from, such as a place in memory, and there are only so many groups.
// Cluster-robust standard error times Student's t; ratios further than five robust standard deviations from
// the median count as that far. 0 where there are fewer than four groups.
double grouped_half_width(std::span<const double> ratios, std::span<const int> groups);
// Whether the interval is narrow enough to stop.
bool narrow_enough(std::span<const double> ratios, const Protocol& protocol);

}  // namespace warpsmith::stats

#include "score_check.h"

#include <cmath>
#include <vector>

#include "warpsmith/stats/score.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::store {

namespace {

// Numbers go through text without loss; another compiler may round sums in another order.
constexpr double kTolerance = 1e-6;
constexpr int kFewestBuckets = 3, kMostBuckets = 31;

bool agree(double a, double b) { return std::abs(a - b) <= kTolerance * std::max(std::abs(a), std::abs(b)); }

double median_of(std::span<const std::int64_t> times) {
  return stats::median(std::vector<double>(times.begin(), times.end()));
}

std::string differs(const char* what, double said, double samples) {
  return std::string(what) + " is " + std::to_string(said) + ", its samples give " + std::to_string(samples);
}

bool same_variance(double a, double b) { return std::abs(a - b) <= kTolerance * b + 1e-15; }

// The score over eager of the protocol that gives score and variance as they were recorded; else of one that
// gives the score (by chance several may); else of the last that was tried.
stats::Score recomputed(std::span<const double> ratios, double log_score, double variance, int buckets) {
  stats::Score score, same_score;
  bool found = false;
  const int first = buckets > 0 ? buckets : kFewestBuckets, last = buckets > 0 ? buckets : kMostBuckets;
  for (int count = first; count <= last; ++count) {
    if (ratios.size() % static_cast<std::size_t>(count) != 0) continue;
    for (const bool medians : {true, false}) {
      stats::Protocol protocol;
      protocol.buckets = count;
      protocol.rounds_a_bucket = static_cast<int>(ratios.size());  // one look: the width of the buckets alone
      protocol.bucket_medians = medians;
      score = stats::score_of(ratios, protocol);
      if (std::abs(score.log_score - log_score) > kTolerance) continue;
      if (same_variance(variance, score.variance)) return score;
      same_score = score;
      found = true;
    }
  }
  return found ? same_score : score;
}

}  // namespace

std::string score_problem(const Measurement& m, std::span<const std::int64_t> samples, int buckets) {
  if (m.rounds <= 0) return "";
  const auto rounds = static_cast<std::size_t>(m.rounds);
  if (samples.size() != 2 * rounds)
    return "it has " + std::to_string(samples.size()) + " samples for " + std::to_string(rounds) + " rounds";
  if (buckets > 0 &&
      (buckets < kFewestBuckets || buckets > kMostBuckets || rounds % static_cast<std::size_t>(buckets) != 0))
    return std::to_string(rounds) + " rounds are not cut into " + std::to_string(buckets) + " buckets";
  for (const std::int64_t each : samples)
    if (each <= 0) return "a sample is not positive";
  const std::span<const std::int64_t> baseline = samples.first(rounds), candidate = samples.last(rounds);
  const double ratio = m.baseline_ratio > 0 ? m.baseline_ratio : 1;
  const stats::Score score =
      recomputed(stats::log_ratios(baseline, candidate), std::log(m.speedup * ratio), m.variance, buckets);
  const double speedup = score.speedup() / ratio;
  if (!agree(m.speedup, speedup)) return differs("the score", m.speedup, speedup);
  if (!agree(m.speedup_rounded, stats::round_toward_one(m.speedup)))
    return differs("the rounded score", m.speedup_rounded, stats::round_toward_one(m.speedup));
  if (!same_variance(m.variance, score.variance)) return differs("the variance", m.variance, score.variance);
  if (!agree(m.baseline_ns * ratio, median_of(baseline)))
    return differs("the baseline's time", m.baseline_ns, median_of(baseline) / ratio);
  if (!agree(m.candidate_ns, median_of(candidate)))
    return differs("the candidate's time", m.candidate_ns, median_of(candidate));
  const double below = std::log(m.speedup / m.speedup_low), above = std::log(m.speedup_high / m.speedup);
  if (!(std::abs(below - above) <= kTolerance && below >= score.half_width - kTolerance))
    return "its interval is " + std::to_string(m.speedup_low) + " to " + std::to_string(m.speedup_high) +
           ", its samples give at least " + std::to_string(speedup * std::exp(-score.half_width)) + " to " +
           std::to_string(speedup * std::exp(score.half_width));
  return "";
}

}  // namespace warpsmith::store

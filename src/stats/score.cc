#include "warpsmith/stats/score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>

#include "warpsmith/stats/summary.h"

namespace warpsmith::stats {

namespace {

constexpr int kFewestBuckets = 3, kMostBuckets = 31;
// 95 % quantile of |median| / (s / sqrt(b)) of b standard normals, b = 3, 4, …, 15; simulated.
constexpr std::array<double, 13> kIntervalFactors = {4.400, 3.276, 3.027, 2.757, 2.767, 2.616, 2.665,
                                                     2.555, 2.615, 2.518, 2.577, 2.500, 2.565};

// The interval that belongs to the buckets alone, not looking at how the number of rounds came about.
double plain_half_width(std::span<const double> buckets) {
  const int count = static_cast<int>(buckets.size());
  return interval_factor(count) * std::sqrt(variance(buckets) / count);
}

std::vector<double> centres(std::span<const double> values, int buckets,
                            double (*centre)(std::span<const double>)) {
  if (buckets < 1 || values.empty() || values.size() % static_cast<std::size_t>(buckets) != 0)
    throw std::invalid_argument("the rounds cannot be cut into equal buckets");
  const std::size_t length = values.size() / static_cast<std::size_t>(buckets);
  std::vector<double> out;
  for (std::size_t begin = 0; begin < values.size(); begin += length)
    out.push_back(centre(values.subspan(begin, length)));
  return out;
}

std::vector<double> buckets_of(std::span<const double> ratios, const Protocol& protocol) {
  return protocol.bucket_medians ? bucket_medians(ratios, protocol.buckets)
                                 : bucket_means(ratios, protocol.buckets);
}

}  // namespace

std::vector<double> log_ratios(std::span<const std::int64_t> baseline_ns,
                               std::span<const std::int64_t> candidate_ns) {
  if (baseline_ns.size() != candidate_ns.size()) throw std::invalid_argument("rounds are not paired");
  std::vector<double> ratios;
  ratios.reserve(baseline_ns.size());
  for (std::size_t i = 0; i < baseline_ns.size(); ++i) {
    if (baseline_ns[i] <= 0 || candidate_ns[i] <= 0) throw std::invalid_argument("a time is not positive");
    ratios.push_back(std::log(static_cast<double>(baseline_ns[i]) / static_cast<double>(candidate_ns[i])));
  }
  return ratios;
}

std::vector<double> bucket_means(std::span<const double> values, int buckets) {
  return centres(values, buckets, mean);
}

std::vector<double> bucket_medians(std::span<const double> values, int buckets) {
  return centres(values, buckets, median);
}

double interval_factor(int buckets) {
  if (buckets < kFewestBuckets || buckets > kMostBuckets)
    throw std::invalid_argument("buckets must be 3 to 31");
  // Beyond the table the factor falls on slowly, for odd and for even counts: the last two are wide enough.
  const std::size_t place = static_cast<std::size_t>(buckets - kFewestBuckets);
  if (place < kIntervalFactors.size()) return kIntervalFactors[place];
  return kIntervalFactors[buckets % 2 == 1 ? 12 : 11];
}

void check(const Protocol& protocol) {
  if (protocol.buckets < kFewestBuckets || protocol.buckets > kMostBuckets)
    throw std::invalid_argument("buckets must be 3 to 31");
  if (protocol.rounds_a_bucket < 1) throw std::invalid_argument("rounds_a_bucket must be at least 1");
  if (!(protocol.target > 0 && protocol.target < 1))
    throw std::invalid_argument("target must lie between 0 and 1");
  if (!(protocol.stop_at > 0 && protocol.stop_at <= 1))
    throw std::invalid_argument("stop_at must lie between 0 and 1");
  if (protocol.fine_rounds < 0) throw std::invalid_argument("fine_rounds must not be negative");
  if (!(protocol.variance_gate >= 0)) throw std::invalid_argument("variance_gate must not be negative");
  if (!(protocol.give_up_below >= 0 && protocol.give_up_below <= 1))
    throw std::invalid_argument("give_up_below must lie between 0 and 1");
}

double variance_gate(const Protocol& protocol) {
  if (protocol.variance_gate > 0) return protocol.variance_gate;
  return 10.0 * variance_of(protocol.target, protocol.buckets);
}

double variance_of(double half_width, int buckets) {
  const double deviation = half_width / interval_factor(buckets);
  return buckets * deviation * deviation;
}

double Score::speedup() const { return std::exp(log_score); }
double Score::low() const { return std::exp(log_score - half_width); }
double Score::high() const { return std::exp(log_score + half_width); }

Score score_of(std::span<const double> ratios, const Protocol& protocol) {
  const std::vector<double> buckets = buckets_of(ratios, protocol);
  Score score;
  score.log_score = median(buckets);
  score.variance = variance(buckets);
  score.rounds = static_cast<int>(ratios.size());
  score.half_width = plain_half_width(buckets);
  if (score.rounds > next_look(0, protocol)) score.half_width = std::max(score.half_width, protocol.target);
  return score;
}

int next_look(int taken, const Protocol& protocol) {
  const int first = protocol.buckets * protocol.rounds_a_bucket;
  if (taken < first) return first;
  const int more_a_bucket = std::max(1, taken / 4 / protocol.buckets);
  return (taken / protocol.buckets + more_a_bucket) * protocol.buckets;
}

bool slow_enough(std::span<const double> ratios, const Protocol& protocol, bool last) {
  if (protocol.give_up_below <= 0 || ratios.empty() ||
      ratios.size() % static_cast<std::size_t>(protocol.buckets) != 0)
    return false;
  const std::vector<double> buckets = buckets_of(ratios, protocol);
  const double half_width = plain_half_width(buckets);
  const bool early = !last && static_cast<double>(ratios.size()) < kRoundsOfTheSlow * next_look(0, protocol);
  return half_width <= (early ? kWidestOfTheSlow : kWidestReward) &&
         median(buckets) + half_width < std::log(protocol.give_up_below);
}

double grouped_half_width(std::span<const double> ratios, std::span<const int> groups) {
  constexpr std::size_t kFewestGroups = 4;
  constexpr double kFarthest = 5, kDeviationsAMad = 1.4826;
  if (ratios.size() != groups.size()) throw std::invalid_argument("every round has a group");
  if (ratios.empty()) return 0;
  const double middle = median(ratios);
  std::vector<double> distances;
  for (const double ratio : ratios) distances.push_back(std::abs(ratio - middle));
  const double farthest = kFarthest * kDeviationsAMad * median(distances);
  std::vector<double> values;
  for (const double ratio : ratios) values.push_back(std::clamp(ratio, middle - farthest, middle + farthest));
  const double centre = mean(values);
  std::map<int, double> sums;
  for (std::size_t i = 0; i < values.size(); ++i) sums[groups[i]] += values[i] - centre;
  if (sums.size() < kFewestGroups) return 0;
  double squares = 0;
  for (const auto& [group, sum] : sums) squares += sum * sum;
  const double count = static_cast<double>(sums.size()), freedom = count - 1;
  const double error = std::sqrt(squares * count / freedom) / static_cast<double>(values.size());
  // Student's 97.5 % quantile, to 1 % from 3 degrees of freedom on.
  const double t =
      1.96 + 2.372 / freedom + 2.822 / (freedom * freedom) + 2.556 / (freedom * freedom * freedom);
  return t * error;
}

bool narrow_enough(std::span<const double> ratios, const Protocol& protocol) {
  if (static_cast<int>(ratios.size()) < next_look(0, protocol)) return false;
  const bool fine = static_cast<int>(ratios.size()) <= protocol.fine_rounds;
  return plain_half_width(buckets_of(ratios, protocol)) <= (fine ? protocol.stop_at : 1) * protocol.target;
}

}  // namespace warpsmith::stats

#include "warpsmith/method/exemplars.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"

namespace warpsmith::method {

namespace {

bool holds(const std::vector<Program>& programs, const std::string& id) {
  return std::any_of(programs.begin(), programs.end(), [&](const Program& p) { return p.id == id; });
}

double best_score(const std::vector<Program>& programs) {
  double best = 0;
  for (const Program& p : programs) best = std::max(best, p.score);
  return best;
}

// A position drawn with the given probabilities, which sum to about 1.
std::size_t pick(const std::vector<double>& probabilities, Random& random) {
  double left = random.uniform();
  for (std::size_t i = 0; i + 1 < probabilities.size(); ++i) {
    if (left < probabilities[i]) return i;
    left -= probabilities[i];
  }
  return probabilities.size() - 1;
}

std::vector<Program> draw_from_buckets(const std::vector<Program>& programs, std::size_t n,
                                       const ExemplarSettings& settings, Random& random) {
  std::vector<double> scores;
  for (const Program& p : programs) scores.push_back(p.score);
  std::vector<Bucket> fresh = make_buckets(scores, settings.bucket_width), used;
  std::vector<Program> drawn;
  while (drawn.size() < n) {
    if (fresh.empty()) {  // fewer buckets than n: once more through those that have programs left
      std::erase_if(used, [](const Bucket& b) { return b.members.empty(); });
      if (used.empty()) return drawn;
      fresh.swap(used);
    }
    const std::size_t i = pick(bucket_probabilities(fresh, settings.bucket_tau), random);
    Bucket bucket = std::move(fresh[i]);
    fresh.erase(fresh.begin() + static_cast<std::ptrdiff_t>(i));
    const std::size_t m = random.below(bucket.members.size());
    drawn.push_back(programs[bucket.members[m]]);
    bucket.members.erase(bucket.members.begin() + static_cast<std::ptrdiff_t>(m));
    used.push_back(std::move(bucket));
  }
  return drawn;
}

std::vector<Program> draw_uniformly(const std::vector<Program>& programs, std::size_t n, Random& random) {
  std::vector<std::size_t> left(programs.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::vector<Program> drawn;
  while (drawn.size() < n && !left.empty()) {
    const std::size_t i = random.below(left.size());
    drawn.push_back(programs[left[i]]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return drawn;
}

// Islands by best score, best first; equal ones by number.
std::vector<std::size_t> by_best(const std::vector<std::vector<Program>>& islands) {
  std::vector<std::size_t> order(islands.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return best_score(islands[a]) > best_score(islands[b]);
  });
  return order;
}

}  // namespace

std::vector<Bucket> make_buckets(const std::vector<double>& scores, double width) {
  if (!(width > 0)) throw Error("exemplar buckets need a width above 0", kExitUsage);
  std::map<std::int64_t, Bucket> buckets;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto k = static_cast<std::int64_t>(std::floor(scores[i] / width + 1e-9));
    Bucket& bucket = buckets[k];
    bucket.k = k;
    bucket.mean += scores[i];
    bucket.members.push_back(i);
  }
  std::vector<Bucket> out;
  for (auto& [k, bucket] : buckets) {
    bucket.mean /= static_cast<double>(bucket.members.size());
    out.push_back(std::move(bucket));
  }
  return out;
}

std::vector<double> bucket_probabilities(const std::vector<Bucket>& buckets, double tau) {
  if (!(tau > 0)) throw Error("exemplar buckets need a temperature above 0", kExitUsage);
  // μ cancels; the highest mean takes its place, so that exp() cannot overflow.
  double highest = -INFINITY;
  for (const Bucket& b : buckets) highest = std::max(highest, b.mean);
  std::vector<double> p;
  double sum = 0;
  for (const Bucket& b : buckets) sum += p.emplace_back(std::exp((b.mean - highest) / tau));
  for (double& x : p) x /= sum;
  return p;
}

ExemplarDatabase::ExemplarDatabase(ExemplarSettings settings) : settings_(settings) {
  if (settings_.kind != ExemplarKind::kIsland) settings_.islands = 1;
  if (settings_.islands < 1) throw Error("there must be at least one island", kExitUsage);
}

std::vector<ExemplarDatabase::Island>& ExemplarDatabase::islands_of(const std::string& task) {
  auto& islands = tasks_[task];
  islands.resize(static_cast<std::size_t>(settings_.islands));
  return islands;
}

void ExemplarDatabase::seed(const std::string& task, std::vector<Program> programs) {
  if (programs.empty()) return;
  const std::size_t count = static_cast<std::size_t>(settings_.islands);
  const std::size_t turns = std::max(programs.size(), count);
  for (std::size_t i = 0; i < turns; ++i)
    add(task, static_cast<int>(i % count), programs[i % programs.size()]);
}

void ExemplarDatabase::add(const std::string& task, int island, Program program) {
  Island& population = islands_of(task).at(static_cast<std::size_t>(island));
  if (!holds(population, program.id)) population.push_back(std::move(program));
}

void ExemplarDatabase::end_round(int round, std::uint64_t key) {
  if (settings_.kind != ExemplarKind::kIsland || settings_.islands < 2 || settings_.island_reset_every < 1 ||
      round % settings_.island_reset_every != 0)
    return;
  for (auto& [task, islands] : tasks_) {
    Random random(random_key({key, name_key(task)}));
    const std::vector<std::size_t> order = by_best(islands);
    const std::size_t survivors = order.size() - order.size() / 2;
    for (std::size_t i = survivors; i < order.size(); ++i) {
      const Island& from = islands[order[random.below(survivors)]];
      Island& to = islands[order[i]];
      if (from.empty()) continue;  // nothing better is known than what the island has
      to = {*std::max_element(from.begin(), from.end(),
                              [](const Program& a, const Program& b) { return a.score < b.score; })};
    }
  }
}

Draw ExemplarDatabase::draw(const std::string& task, int n, std::uint64_t key) const {
  Draw out;
  const auto it = tasks_.find(task);
  if (settings_.kind == ExemplarKind::kNone || it == tasks_.end() || n <= 0) return out;
  Random random(key);
  if (settings_.islands > 1) out.island = static_cast<int>(random.below(it->second.size()));
  const Island& programs = it->second[static_cast<std::size_t>(out.island)];
  const auto count = static_cast<std::size_t>(n);
  out.exemplars = settings_.kind == ExemplarKind::kRandom
                      ? draw_uniformly(programs, count, random)
                      : draw_from_buckets(programs, count, settings_, random);
  return out;
}

std::size_t ExemplarDatabase::size(const std::string& task) const {
  const auto it = tasks_.find(task);
  if (it == tasks_.end()) return 0;
  std::set<std::string> ids;
  for (const Island& island : it->second)
    for (const Program& p : island) ids.insert(p.id);
  return ids.size();
}

const std::vector<Program>& ExemplarDatabase::programs(const std::string& task, int island) const {
  static const std::vector<Program> kNothing;
  const auto it = tasks_.find(task);
  return it == tasks_.end() ? kNothing : it->second.at(static_cast<std::size_t>(island));
}

}  // namespace warpsmith::method

#include "warpsmith/run/packing.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace warpsmith::run {

namespace {

// As many attempts, or as long at work, and what was seen counts as much as the guess.
constexpr double kAttemptsAsGoodAsTheGuess = 3, kSecondsAsGoodAsTheGuess = 30;

using Shards = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// Each shard ends where its time is nearest to its share of what is left. None is empty.
Shards equally_long(std::span<const double> item_s, std::uint64_t count) {
  Shards shards;
  double left_s = std::accumulate(item_s.begin(), item_s.end(), 0.);
  std::uint64_t begin = 0;
  for (std::uint64_t left = count; left > 0; --left) {
    const std::uint64_t most = item_s.size() - (left - 1);  // the others get one each
    const double share_s = left_s / static_cast<double>(left);
    std::uint64_t end = begin + 1;
    double taken_s = item_s[begin];
    while (end < most && (left == 1 || taken_s + item_s[end] / 2 <= share_s)) taken_s += item_s[end++];
    shards.emplace_back(begin, end);
    begin = end;
    left_s -= taken_s;
  }
  return shards;
}

}  // namespace

std::vector<std::pair<std::uint64_t, std::uint64_t>> pack_items(const PackRequest& r) {
  if (r.items == 0) return {};
  std::uint64_t count = 1;
  if (!r.one_shard) {
    const double total_s = static_cast<double>(r.items) * std::max(r.expected_item_s, 0.0);
    const double by_length = r.shard_s > 0 ? std::ceil(total_s / r.shard_s) : 1;
    const double by_slots = std::min<double>(r.slots, std::floor(total_s / std::max(r.start_s, 1e-9)));
    count = static_cast<std::uint64_t>(std::clamp(
        std::max({by_length, by_slots, static_cast<double>(r.least)}), 1.0, static_cast<double>(r.items)));
  }
  if (r.item_s.size() == r.items) return equally_long(r.item_s, count);
  Shards shards;
  shards.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i)
    shards.emplace_back(r.items / count * i + std::min(i, r.items % count),
                        r.items / count * (i + 1) + std::min(i + 1, r.items % count));
  return shards;
}

std::string told_sizes(std::span<const std::pair<std::uint64_t, std::uint64_t>> shards) {
  std::string told;
  std::uint64_t items = 0;
  for (const auto& [begin, end] : shards) items += end - begin;
  const std::vector<std::uint64_t> equal = sizes_told("", items, shards.size());
  bool as_many = true;
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const std::uint64_t size = shards[s].second - shards[s].first;
    as_many = as_many && size == equal[s];
    told += (s > 0 ? "," : "") + std::to_string(size);
  }
  return as_many ? "" : told;
}

std::vector<std::uint64_t> sizes_told(const std::string& told, std::uint64_t items, std::uint64_t shards) {
  std::vector<std::uint64_t> sizes;
  const char* at = told.data();
  for (const char* const end = at + told.size(); at < end;) {
    const auto [behind, error] = std::from_chars(at, end, sizes.emplace_back());
    if (error != std::errc()) break;
    at = behind + 1;
  }
  if (sizes.size() == shards && std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}) == items)
    return sizes;
  sizes.clear();
  for (std::uint64_t s = 0; s < shards; ++s) sizes.push_back(items / shards + (s < items % shards ? 1 : 0));
  return sizes;
}

double learnt_item_s(double guess_s, const TimedItems& seen, double start_s) {
  if (seen.items == 0 || seen.attempts == 0 || seen.wall_s <= 0 || guess_s <= 0) return guess_s;
  const auto attempts = static_cast<double>(seen.attempts);
  const double work_s = std::max(seen.wall_s - attempts * std::max(start_s, 0.0), seen.wall_s / 2);
  const double seen_s =
      std::clamp(work_s / static_cast<double>(seen.items), guess_s / kMostWrong, guess_s * kMostWrong);
  // Guess and sight may lie powers of ten apart: the blend is one of their logarithms.
  const double evidence =
      std::max(attempts / kAttemptsAsGoodAsTheGuess, seen.wall_s / kSecondsAsGoodAsTheGuess);
  return guess_s * std::pow(seen_s / guess_s, evidence / (1 + evidence));
}

}  // namespace warpsmith::run

// Items of a job into shards: contiguous ranges of nearly equal length; and how long an item takes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace warpsmith::run {

struct PackRequest {
  std::uint64_t items = 0;
  double expected_item_s = 1;  // expected duration of an item
  double shard_s = 60;         // what a shard should take
  bool one_shard = false;
  int least = 1;                        // shards, where there are as many items
  int slots = 1;                        // shards that may run side by side here
  double start_s = 1;                   // what starting a shard costs: work shorter than that is not spread
  std::span<const double> item_s = {};  // each item's expected duration against the others'; empty: all alike
};

// As many shards as make each take about shard_s, but enough to keep every slot busy where that pays; all of
// them about as long. No items: no shards. A function of its argument; what it made stands in job.json, and a
// controller that goes on with a run takes it from there: by then more may have been learnt.
std::vector<std::pair<std::uint64_t, std::uint64_t>> pack_items(const PackRequest& request);

// Items of each shard, as the journal keeps them: "" where each has as many, the first ones one more where
// they do not divide; else "15,16,15".
std::string told_sizes(std::span<const std::pair<std::uint64_t, std::uint64_t>> shards);
// The way back. What is no list of so many sizes is taken for "".
std::vector<std::uint64_t> sizes_told(const std::string& told, std::uint64_t items, std::uint64_t shards);

// Items that got their record, and the attempts that it took.
struct TimedItems {
  std::uint64_t items = 0, attempts = 0;
  double wall_s = 0;  // of the attempts together
};

inline constexpr double kMostWrong = 100;  // a guess may be so many times too long or too short

// What an item may be expected to take, in seconds: `guess_s`, and the more has been seen the more of that.
// Starting an attempt takes start_s, which is taken off, but half of its time at most: where a start is
// cheaper than it was said to be, shards shall not come out many times too long. Within a factor of
// kMostWrong from the guess.
double learnt_item_s(double guess_s, const TimedItems& seen, double start_s);

}  // namespace warpsmith::run

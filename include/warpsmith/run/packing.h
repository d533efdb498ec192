// Items of a job into shards: contiguous ranges of nearly equal length.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace warpsmith::run {

struct PackRequest {
  std::uint64_t items = 0;
  double expected_item_s = 1;  // expected duration of an item
  double shard_s = 60;         // what a shard should take
  bool one_shard = false;
  int slots = 1;       // shards that may run side by side here
  double start_s = 1;  // what starting a shard costs: work shorter than that is not spread
};

// As many shards as make each take about shard_s, but enough to keep every slot busy where that pays. No
// items: no shards. A function of its argument: a controller that goes on with a run cuts a job as the one
// before it did.
std::vector<std::pair<std::uint64_t, std::uint64_t>> pack_items(const PackRequest& request);

}  // namespace warpsmith::run

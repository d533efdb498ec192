#include "warpsmith/run/packing.h"

#include <algorithm>
#include <cmath>

namespace warpsmith::run {

std::vector<std::pair<std::uint64_t, std::uint64_t>> pack_items(const PackRequest& r) {
  if (r.items == 0) return {};
  std::uint64_t count = 1;
  if (!r.one_shard) {
    const double total_s = static_cast<double>(r.items) * std::max(r.expected_item_s, 0.0);
    const double by_length = r.shard_s > 0 ? std::ceil(total_s / r.shard_s) : 1;
    const double by_slots = std::min<double>(r.slots, std::floor(total_s / std::max(r.start_s, 1e-9)));
    count = static_cast<std::uint64_t>(
        std::clamp(std::max(by_length, by_slots), 1.0, static_cast<double>(r.items)));
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> shards;
  shards.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i)
    shards.emplace_back(r.items / count * i + std::min(i, r.items % count),
                        r.items / count * (i + 1) + std::min(i + 1, r.items % count));
  return shards;
}

}  // namespace warpsmith::run

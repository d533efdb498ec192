#include "warpsmith/run/packing.h"

#include <gtest/gtest.h>

namespace warpsmith::run {
namespace {

using Shards = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST(Packing, ByExpectedDuration) {
  EXPECT_EQ(pack_items({.items = 10, .expected_item_s = 10, .shard_s = 30}),
            (Shards{{0, 3}, {3, 6}, {6, 8}, {8, 10}}));
}

TEST(Packing, NoItemsNoShards) { EXPECT_EQ(pack_items({.items = 0}), Shards{}); }

TEST(Packing, KeepsEverySlotBusy) {
  EXPECT_EQ(pack_items({.items = 8, .expected_item_s = 2, .shard_s = 600, .slots = 2}),
            (Shards{{0, 4}, {4, 8}}));
}

TEST(Packing, DoesNotSpreadWhatIsShorterThanStartingAShard) {
  EXPECT_EQ(pack_items({.items = 8, .expected_item_s = 0.1, .shard_s = 600, .slots = 2}), (Shards{{0, 8}}));
}

TEST(Packing, OneShardStaysOne) {
  EXPECT_EQ(pack_items({.items = 8, .expected_item_s = 100, .shard_s = 1, .one_shard = true, .slots = 4}),
            (Shards{{0, 8}}));
}

TEST(Packing, NeverMoreShardsThanItems) {
  EXPECT_EQ(pack_items({.items = 2, .expected_item_s = 1000, .shard_s = 1, .slots = 16}),
            (Shards{{0, 1}, {1, 2}}));
}

TEST(Packing, CoversAllItemsOnce) {
  for (std::uint64_t items = 1; items < 200; ++items) {
    std::uint64_t next = 0;
    for (const auto& [begin, end] :
         pack_items({.items = items, .expected_item_s = 7, .shard_s = 40, .slots = 3})) {
      EXPECT_EQ(begin, next);
      EXPECT_LT(begin, end);
      next = end;
    }
    EXPECT_EQ(next, items);
  }
}

}  // namespace
}  // namespace warpsmith::run

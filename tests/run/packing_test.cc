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

TEST(Packing, AtLeastSoManyWhereThereAreAsManyItems) {
  EXPECT_EQ(pack_items({.items = 8, .expected_item_s = 0.1, .shard_s = 600, .least = 2}),
            (Shards{{0, 4}, {4, 8}}));
  EXPECT_EQ(pack_items({.items = 2, .expected_item_s = 0.1, .shard_s = 600, .least = 5}),
            (Shards{{0, 1}, {1, 2}}));
}

TEST(Packing, OneShardStaysOne) {
  EXPECT_EQ(pack_items({.items = 8, .expected_item_s = 100, .shard_s = 1, .one_shard = true, .slots = 4}),
            (Shards{{0, 8}}));
}

TEST(Packing, ShardsAreAboutAsLongWhereItemsAreNot) {
  const std::vector<double> item_s = {60, 60, 60, 8, 8, 8, 8, 60, 60, 8};
  const Shards shards =
      pack_items({.items = 10, .expected_item_s = 34, .shard_s = 600, .slots = 5, .item_s = item_s});
  EXPECT_EQ(shards, (Shards{{0, 1}, {1, 2}, {2, 5}, {5, 8}, {8, 10}}));
}

TEST(Packing, CoversAllItemsOnceWhereOneTakesAlmostAll) {
  for (const std::uint64_t longest : {0, 3, 6}) {
    std::vector<double> item_s(7, 0.);
    item_s[longest] = 1000;
    const Shards shards =
        pack_items({.items = 7, .expected_item_s = 143, .shard_s = 600, .slots = 4, .item_s = item_s});
    ASSERT_EQ(shards.size(), 4u);
    std::uint64_t next = 0;
    for (const auto& [begin, end] : shards) {
      EXPECT_EQ(begin, next);
      EXPECT_LT(begin, end);
      next = end;
    }
    EXPECT_EQ(next, 7u);
  }
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

TEST(Packing, TheJournalKnowsHowManyItemsAShardHas) {
  for (std::uint64_t items = 1; items < 60; ++items) {
    std::vector<double> item_s(items, 7);
    for (std::uint64_t i = 0; i < items; i += 5) item_s[i] = 60;
    for (const auto& times : {std::vector<double>{}, item_s}) {
      const Shards shards =
          pack_items({.items = items, .expected_item_s = 7, .shard_s = 40, .slots = 3, .item_s = times});
      const std::string told = told_sizes(shards);
      EXPECT_TRUE(!times.empty() || told.empty()) << items;
      std::vector<std::uint64_t> sizes;
      for (const auto& [begin, end] : shards) sizes.push_back(end - begin);
      EXPECT_EQ(sizes_told(told, items, shards.size()), sizes) << told;
    }
  }
  EXPECT_EQ(told_sizes(Shards{{0, 15}, {15, 31}, {31, 46}}), "15,16,15");
  const std::vector<std::uint64_t> equal = {16, 15, 15};
  for (const char* wrong : {"", "15,16", "15,16,16", "a", "15,,16,15", "15,16,15,0"})
    EXPECT_EQ(sizes_told(wrong, 46, 3), equal) << wrong;
}

// guess, items, attempts, seconds of these, seconds of a start -> expected
TEST(LearntItem, GoesFromTheGuessToWhatWasSeen) {
  EXPECT_EQ(learnt_item_s(2, {}, 1), 2) << "nothing was seen";
  EXPECT_EQ(learnt_item_s(2, {.items = 0, .attempts = 5, .wall_s = 50}, 1), 2) << "no item came of it";
  EXPECT_EQ(learnt_item_s(2, {.items = 10, .attempts = 5, .wall_s = 0}, 1), 2)
      << "nobody knows how long it took";
  // Three attempts weigh as much as the guess: the geometric mean of 2 and 8.
  EXPECT_NEAR(learnt_item_s(2, {.items = 3, .attempts = 3, .wall_s = 24}, 0), 4, 1e-9);
  // So does one of 30 s.
  EXPECT_NEAR(learnt_item_s(2, {.items = 60, .attempts = 1, .wall_s = 30}, 0), 1, 1e-9);
  EXPECT_NEAR(learnt_item_s(2, {.items = 1000, .attempts = 100, .wall_s = 8000}, 0), 8, 0.05) << "believed";
  EXPECT_NEAR(learnt_item_s(2, {.items = 1, .attempts = 1, .wall_s = 0.1}, 0), 0.95, 0.01)
      << "a quarter of the way";
}

TEST(LearntItem, TakesOffWhatAStartCosts) {
  const TimedItems seen{.items = 10000, .attempts = 1000, .wall_s = 20000};
  EXPECT_NEAR(learnt_item_s(1, seen, 5), 1.5, 0.01);
  EXPECT_NEAR(learnt_item_s(1, seen, 15), 1, 0.01) << "half of the time is work at least";
}

TEST(LearntItem, StaysWithinAFactorFromTheGuess) {
  const TimedItems slow{.items = 1, .attempts = 1000, .wall_s = 1e9},
      fast{.items = 1000000000, .attempts = 1000, .wall_s = 1};
  EXPECT_LE(learnt_item_s(2, slow, 0), 200);
  EXPECT_GT(learnt_item_s(2, slow, 0), 190);
  EXPECT_GE(learnt_item_s(2, fast, 0), 0.02);
  EXPECT_LT(learnt_item_s(2, fast, 0), 0.021);
}

}  // namespace
}  // namespace warpsmith::run

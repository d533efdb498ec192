// In which order rows take their places.
#include "timing/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace warpsmith::measure {
namespace {

std::vector<int> drawn(PlaceDeck& deck, int places, int times) {
  std::vector<int> all;
  for (int i = 0; i < times; ++i) all.push_back(deck.draw(places));
  return all;
}

std::vector<int> sorted(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST(PlaceDeck, EachComesOnceBeforeAnyComesAgain) {
  PlaceDeck deck;
  std::set<std::vector<int>> orders;
  for (int pass = 0; pass < 3; ++pass) {
    const std::vector<int> places = drawn(deck, 62, 62), in_order = sorted(places);
    for (int i = 0; i < 62; ++i) EXPECT_EQ(in_order[static_cast<std::size_t>(i)], i);
    orders.insert(places);
  }
  EXPECT_EQ(orders.size(), 3u);
  EXPECT_EQ(drawn(deck, 1, 3), (std::vector<int>{0, 0, 0}));
}

TEST(PlaceDeck, TheOrderIsTheKeysWhateverCameBefore) {
  std::set<std::vector<int>> orders;
  PlaceDeck used;
  for (std::uint64_t key = 0; key < 20; ++key) {
    PlaceDeck fresh;
    fresh.begin(key);
    const std::vector<int> order = drawn(fresh, 30, 75);
    drawn(used, 30, static_cast<int>(key));
    used.begin(key);
    EXPECT_EQ(order, drawn(used, 30, 75));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 20u);
}

TEST(PlaceDeck, OtherPlacesAreAnotherDeck) {
  PlaceDeck deck;
  drawn(deck, 40, 7);
  EXPECT_EQ(sorted(drawn(deck, 10, 10)), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace warpsmith::measure

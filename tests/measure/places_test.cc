// In which order rows take their places.
#include "timing/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace warpsmith::measure {
namespace {

std::vector<int> drawn(PlaceDeck& deck, int places, int times, std::uint64_t key) {
  std::vector<int> all;
  for (int i = 0; i < times; ++i) all.push_back(deck.draw(places, key + static_cast<std::uint64_t>(i)));
  return all;
}

TEST(PlaceDeck, EachComesOnceBeforeAnyComesAgain) {
  PlaceDeck deck;
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<int> places = drawn(deck, 62, 62, 1000u * static_cast<unsigned>(pass));
    std::sort(places.begin(), places.end());
    for (int i = 0; i < 62; ++i) EXPECT_EQ(places[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(drawn(deck, 1, 3, 5), (std::vector<int>{0, 0, 0}));
}

TEST(PlaceDeck, TheOrderIsTheKeys) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t key = 0; key < 20; ++key) {
    PlaceDeck a, b;
    const std::vector<int> order = drawn(a, 30, 30, 100 * key);
    EXPECT_EQ(order, drawn(b, 30, 30, 100 * key));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 20u);
}

TEST(PlaceDeck, OtherPlacesAreAnotherDeck) {
  PlaceDeck deck;
  drawn(deck, 40, 7, 1);
  std::vector<int> fewer = drawn(deck, 10, 10, 2);
  std::sort(fewer.begin(), fewer.end());
  EXPECT_EQ(fewer, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace warpsmith::measure

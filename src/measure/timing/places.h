// In which place in memory a row's operands lie.
#pragma once

#include <cstdint>
#include <vector>

namespace warpsmith::measure {

// Each of the places comes once, in an order that is drawn, before any comes again: what hangs on the place
// is the same for all rounds together, and one bucket of them has no place twice.
class PlaceDeck {
 public:
  // One of 0…places-1, at least one. `key` draws the order where all have come, or there are others than
  // there were.
  int draw(int places, std::uint64_t key);

 private:
  int places_ = 0;
  std::vector<int> left_;
};

}  // namespace warpsmith::measure

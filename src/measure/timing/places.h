// In which place in memory a row's operands lie.
#pragma once

#include <cstdint>
#include <vector>

namespace warpsmith::measure {

// Each of the places comes once, in an order that is drawn, before any comes again. (Drawn each by itself,
// of 62 places 20 did not come in 70 rounds, and others three times: what hangs on the place was another
// mean in each measurement.)
class PlaceDeck {
 public:
  // From here on the order is that of `key`, whatever was drawn before.
  void begin(std::uint64_t key);
  // One of 0…places-1, at least one. Where there are others than there were, all may come again.
  int draw(int places);

 private:
  std::uint64_t key_ = 0, shuffles_ = 0;
  int places_ = 0;
  std::vector<int> left_;
};

}  // namespace warpsmith::measure

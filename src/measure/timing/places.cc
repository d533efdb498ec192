#include "places.h"

#include <algorithm>
#include <numeric>

#include "warpsmith/base/random.h"

namespace warpsmith::measure {

void PlaceDeck::begin(std::uint64_t key) {
  key_ = key;
  shuffles_ = 0;
  left_.clear();
}

int PlaceDeck::draw(int places) {
  if (left_.empty() || places != places_) {
    places_ = std::max(1, places);
    left_.resize(static_cast<std::size_t>(places_));
    std::iota(left_.begin(), left_.end(), 0);
    Random random(random_key({key_, name_key("places"), ++shuffles_}));
    shuffle(left_, random);
  }
  const int place = left_.back();
  left_.pop_back();
  return place;
}

}  // namespace warpsmith::measure

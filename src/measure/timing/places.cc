#include "places.h"

#include <algorithm>
#include <numeric>

#include "warpsmith/base/random.h"

namespace warpsmith::measure {

int PlaceDeck::draw(int places, std::uint64_t key) {
  if (left_.empty() || places != places_) {
    places_ = places;
    left_.resize(static_cast<std::size_t>(places));
    std::iota(left_.begin(), left_.end(), 0);
    Random random(random_key({key, name_key("places")}));
    std::shuffle(left_.begin(), left_.end(), random);
  }
  const int place = left_.back();
  left_.pop_back();
  return place;
}

}  // namespace warpsmith::measure

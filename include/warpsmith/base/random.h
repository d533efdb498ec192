// Counter-based random numbers: a stream is a function of its key and nothing else, so that what an item
// draws does not depend on the shard, batch or attempt in which it runs. SplitMix64 (Steele, Lea, Flood 2014)
// over a hashed key.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>

namespace warpsmith {

constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// A key from numbers, in order: random_key({seed, round, item}).
constexpr std::uint64_t random_key(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t key = 0x5741525053ull;
  for (const std::uint64_t part : parts) key = mix64(key ^ mix64(part));
  return key;
}

// A number for a name (FNV-1a, then mixed), to use in a key.
constexpr std::uint64_t name_key(std::string_view name) {
  std::uint64_t h = 0xCBF29CE484222325ull;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return mix64(h);
}

// One stream. Satisfies std::uniform_random_bit_generator.
class Random {
 public:
  using result_type = std::uint64_t;
  explicit Random(std::uint64_t key) : state_(key) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~0ull; }
  result_type operator()() { return mix64(state_ += 0x9E3779B97F4A7C15ull); }
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }  // [0, 1)
  // [0, n), n > 0; by rejection, so exactly uniform
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t limit = max() - max() % n;
    std::uint64_t x = (*this)();
    while (x >= limit) x = (*this)();
    return x % n;
  }
  double normal() {  // Box-Muller, one of the pair
    const double u = 1.0 - uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * uniform());
  }

 private:
  std::uint64_t state_;
};

// Any order of them, all equally likely (Fisher and Yates): the same everywhere, which std::shuffle's is not.
template <class Values>
void shuffle(Values&& values, Random& random) {
  for (std::size_t i = std::size(values); i > 1; --i)
    std::swap(values[i - 1], values[static_cast<std::size_t>(random.below(i))]);
}

}  // namespace warpsmith

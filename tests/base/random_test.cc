// Expected values come from an independent program in Python: a change of one bit makes every run
// unrepeatable.
#include "warpsmith/base/random.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace warpsmith {
namespace {

TEST(Random, KnownValues) {
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafull);  // SplitMix64's first output for seed 0
  EXPECT_EQ(mix64(1), 0x910a2dec89025cc1ull);
  EXPECT_EQ(random_key({}), 0x5741525053ull);
  EXPECT_EQ(random_key({1}), 0xc2a2861c1d2e0a62ull);
  EXPECT_EQ(random_key({1, 2, 3}), 0xd356df0d02e94ea9ull);
  EXPECT_EQ(random_key({3, 2, 1}), 0xfa81f4e156e2a349ull);
  EXPECT_EQ(name_key(""), 0xc3817c016ba4ff30ull);
  EXPECT_EQ(name_key("contrastive"), 0xe7a4a890d0403ea5ull);
  Random stream(42);
  for (const std::uint64_t expected :
       {0x28efe333b266f103ull, 0x47526757130f9f52ull, 0x581ce1ff0e4ae394ull, 0x09bc585a244823f2ull})
    EXPECT_EQ(stream(), expected);
  Random again(42);
  EXPECT_DOUBLE_EQ(again.uniform(), 0.1599103928769201);
  EXPECT_DOUBLE_EQ(again.uniform(), 0.27860113025513866);
}

TEST(Random, KeysOfNeighboursDiffer) {
  std::set<std::uint64_t> keys;
  for (std::uint64_t a = 0; a < 100; ++a)
    for (std::uint64_t b = 0; b < 100; ++b) keys.insert(random_key({a, b}));
  EXPECT_EQ(keys.size(), 10'000u);
}

TEST(Random, BelowIsInRangeAndEven) {
  Random stream(7);
  std::map<std::uint64_t, int> counts;
  for (int i = 0; i < 60'000; ++i) ++counts[stream.below(6)];
  EXPECT_EQ(counts.size(), 6u);
  EXPECT_LT(counts.rbegin()->first, 6u);
  // Standard deviation of a count is 91; five of them.
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 10'000, 460) << value;
  EXPECT_EQ(stream.below(1), 0u);
}

TEST(Random, UniformAndNormalHaveTheirMoments) {
  Random stream(11);
  constexpr int kCount = 100'000;
  double sum = 0, normal_sum = 0, normal_squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double u = stream.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    const double x = stream.normal();
    normal_sum += x;
    normal_squares += x * x;
  }
  // Five standard errors each.
  EXPECT_NEAR(sum / kCount, 0.5, 0.0046);
  EXPECT_NEAR(normal_sum / kCount, 0, 0.016);
  EXPECT_NEAR(normal_squares / kCount, 1, 0.023);
}

TEST(Random, WorksWithTheStandardLibrary) {
  static_assert(std::uniform_random_bit_generator<Random>);
  Random stream(3);
  const double x = std::uniform_real_distribution<double>(2, 3)(stream);
  EXPECT_GE(x, 2);
  EXPECT_LT(x, 3);
}

}  // namespace
}  // namespace warpsmith

#include "warpsmith/measure/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "answers/value_elements.h"
#include "warpsmith/base/error.h"

namespace warpsmith::measure {
namespace {

using task::Dtype;

task::ValueSpec spec(const std::string& kind, const std::vector<std::string>& arguments = {}) {
  task::ValueSpec values;
  values.kind = kind;
  for (const std::string& argument : arguments) values.arguments.push_back(task::Expression::parse(argument));
  return values;
}

const ValueSource& value_source() {
  static const ValueSource source;
  return source;
}

template <typename T>
std::vector<T> draw(const task::ValueSpec& values, Dtype dtype, std::vector<std::int64_t> shape,
                    std::uint64_t key, const task::Dims& dims = {}) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<T> out(static_cast<std::size_t>(count));
  value_source().fill(values, dtype, shape, dims, key, std::as_writable_bytes(std::span(out)));
  return out;
}

struct Moments {
  double mean = 0, deviation = 0, low = 0, high = 0;
};

template <typename T>
Moments moments(const std::vector<T>& values) {
  Moments m;
  for (const T value : values) m.mean += static_cast<double>(value);
  m.mean /= static_cast<double>(values.size());
  for (const T value : values) m.deviation += std::pow(static_cast<double>(value) - m.mean, 2);
  m.deviation = std::sqrt(m.deviation / static_cast<double>(values.size()));
  m.low = static_cast<double>(*std::min_element(values.begin(), values.end()));
  m.high = static_cast<double>(*std::max_element(values.begin(), values.end()));
  return m;
}

TEST(Values, NormalHasItsMomentsUnderEveryKey) {
  for (std::uint64_t key = 1; key <= 20; ++key) {
    const Moments m = moments(draw<float>(spec("normal", {"2", "0.5"}), Dtype::kFloat32, {300, 1000}, key));
    EXPECT_NEAR(m.mean, 2.0, 0.01);
    EXPECT_NEAR(m.deviation, 0.5, 0.01);
    EXPECT_GT(m.high, 3.5);
    EXPECT_LT(m.low, 0.5);
  }
}

TEST(Values, UniformFillsItsRange) {
  const Moments m = moments(draw<float>(spec("uniform", {"-1", "3"}), Dtype::kFloat32, {100000}, 5));
  EXPECT_NEAR(m.mean, 1.0, 0.02);
  EXPECT_NEAR(m.deviation, 4 / std::sqrt(12.0), 0.02);
  EXPECT_GE(m.low, -1);
  EXPECT_LT(m.high, 3);
  EXPECT_LT(m.low, -0.99);
  EXPECT_GT(m.high, 2.99);
}

TEST(Values, IntegersStayBelowABoundThatIsADim) {
  const std::vector<std::int64_t> values =
      draw<std::int64_t>(spec("integers", {"0", "N"}), Dtype::kInt64, {10000}, 7, {{"N", 13}});
  const std::set<std::int64_t> seen(values.begin(), values.end());
  EXPECT_EQ(seen.size(), 13u);
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), 12);
}

TEST(Values, PermutationRowsArePermutationsAndDiffer) {
  const std::vector<std::int32_t> values =
      draw<std::int32_t>(spec("permutation"), Dtype::kInt32, {4, 100}, 3);
  std::set<std::vector<std::int32_t>> rows;
  for (int row = 0; row < 4; ++row) {
    std::vector<std::int32_t> order(values.begin() + row * 100, values.begin() + (row + 1) * 100);
    rows.insert(order);
    std::sort(order.begin(), order.end());
    for (int i = 0; i < 100; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(rows.size(), 4u);
}

// Each order has its share, and a row's first elements say nothing of its others but that these are left.
TEST(Values, PermutationsAreShuffledAndNotTurned) {
  const std::vector<std::int64_t> values =
      draw<std::int64_t>(spec("permutation"), Dtype::kInt64, {24000, 4}, 3);
  std::map<std::vector<std::int64_t>, int> seen;
  for (auto row = values.begin(); row != values.end(); row += 4) ++seen[{row, row + 4}];
  EXPECT_EQ(seen.size(), 24u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1000, 160);  // five standard deviations
  EXPECT_NE(values, draw<std::int64_t>(spec("permutation"), Dtype::kInt64, {24000, 4}, 4));
  EXPECT_EQ(values, draw<std::int64_t>(spec("permutation"), Dtype::kInt64, {24000, 4}, 3));
}

TEST(Values, BernoulliOnesAndZeros) {
  const std::vector<std::uint8_t> bits =
      draw<std::uint8_t>(spec("bernoulli", {"0.25"}), Dtype::kBool, {40000}, 9);
  EXPECT_NEAR(moments(bits).mean, 0.25, 0.01);
  EXPECT_LE(moments(bits).high, 1);
  EXPECT_EQ(draw<float>(spec("ones"), Dtype::kFloat32, {3}, 1), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(draw<std::int64_t>(spec("zeros"), Dtype::kInt64, {2}, 1), (std::vector<std::int64_t>{0, 0}));
}

TEST(Values, AreAFunctionOfTheKeyAlone) {
  const auto a = draw<float>(spec("normal"), Dtype::kFloat32, {5000}, 42);
  EXPECT_EQ(a, draw<float>(spec("normal"), Dtype::kFloat32, {5000}, 42));
  const auto b = draw<float>(spec("normal"), Dtype::kFloat32, {5000}, 43);
  int equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  EXPECT_LT(equal, 5);  // every element is new
}

TEST(Values, ALongerTensorBeginsLikeAShorterOne) {
  const auto longer = draw<float>(spec("uniform", {"0", "1"}), Dtype::kFloat32, {40000}, 4);
  const auto shorter = draw<float>(spec("uniform", {"0", "1"}), Dtype::kFloat32, {33000}, 4);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
}

TEST(Values, RowsOfAPowerOfTwoDoNotRepeat) {
  const auto values = draw<float>(spec("normal"), Dtype::kFloat32, {8, 32768}, 6);
  for (int row = 1; row < 8; ++row) {
    int equal = 0;
    for (int i = 0; i < 32768; ++i)
      equal += values[static_cast<std::size_t>(i)] == values[static_cast<std::size_t>(row * 32768 + i)];
    EXPECT_LT(equal, 30) << row;
  }
}

// With one pair of places a tensor, each element would be v[i - P] + v[i - Q] - v[i - P - Q].
TEST(Values, DoNotFollowFromOneAnother) {
  constexpr std::int64_t kCount = 200'000;
  const auto reals = draw<float>(spec("normal"), Dtype::kFloat32, {kCount}, 11);
  const auto bits = draw<std::int64_t>(spec("integers", {"0", "4294967296"}), Dtype::kInt64, {kCount}, 12);
  int reals_foretold = 0, bits_foretold = 0;
  const auto guess = [](const auto& v, std::size_t i) {
    return v[i - kFirstPool] + v[i - kSecondPool] - v[i - kFirstPool - kSecondPool];
  };
  for (std::size_t i = kFirstPool + kSecondPool; i < reals.size(); ++i) {
    reals_foretold += std::abs(guess(reals, i) - reals[i]) < 1e-4f;
    bits_foretold += static_cast<std::uint32_t>(guess(bits, i)) == static_cast<std::uint32_t>(bits[i]);
  }
  EXPECT_LT(reals_foretold, 20);  // by chance: some 5
  EXPECT_LT(bits_foretold, 2);
}

TEST(Values, BlocksOfATensorAreUncorrelated) {
  constexpr std::size_t kBlocks = 64;
  const auto v = draw<float>(spec("normal"), Dtype::kFloat32, {kBlocks * kValueBlock}, 13);
  double squares = 0;
  for (std::size_t a = 0; a < kBlocks; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      double r = 0;
      for (std::size_t j = 0; j < kValueBlock; ++j) r += v[a * kValueBlock + j] * v[b * kValueBlock + j];
      r /= kValueBlock;
      EXPECT_LT(std::abs(r), 0.4) << a << " " << b;  // six standard deviations
      squares += r * r;
    }
  EXPECT_NEAR(squares / (kBlocks * (kBlocks - 1) / 2), 1.0 / kValueBlock, 0.0006);
}

TEST(Values, PlacesOfBlocksAreSpreadOverThePools) {
  constexpr int kBlocks = 64'000, kParts = 16;
  int first[kParts] = {}, second[kParts] = {}, both[kParts] = {}, mask[kParts] = {};
  for (Word block = 0; block < kBlocks; ++block) {
    const BlockPlaces at = places_of(7, block);
    ASSERT_LT(at.first, kFirstPool);
    ASSERT_LT(at.second, kSecondPool);
    ++first[at.first * kParts / kFirstPool];
    ++second[at.second * kParts / kSecondPool];
    ++both[(at.first + kSecondPool - at.second) % kSecondPool * kParts / kSecondPool];
    ++mask[at.mask >> 28];
  }
  for (const int* seen : {first, second, both, mask})
    for (int part = 0; part < kParts; ++part)
      EXPECT_NEAR(seen[part], kBlocks / kParts, 310);  // five deviations
  EXPECT_NE(places_of(7, 0).first, places_of(8, 0).first);
}

// The harness's kernel, thread by thread of a grid, as ws_values in gpu/kernels.cu.
template <typename T>
std::vector<T> draw_like_kernel(const task::ValueSpec& values, std::size_t count, std::uint64_t key,
                                Word threads) {
  const ValueDraw d = ValueSource::draw(values, {}, key);
  const ValueSource::PoolView pools = value_source().pools();
  std::vector<T> out(count);
  std::vector<int> written(count);
  for (Word thread = 0; thread < threads; ++thread)
    for_elements_of(thread, threads, d.key, count, [&](Word i, unsigned a, unsigned b, unsigned mask) {
      ++written.at(i);
      const unsigned bits = bits_of(pools.first_bits[a], pools.second_bits[b], mask);
      switch (d.kind) {
        case ValueDraw::Kind::kNormal:
          out[i] = static_cast<T>(
              normal_of(pools.first_normal[a], pools.second_normal[b], d.base, d.x_scale, d.y_scale));
          break;
        case ValueDraw::Kind::kUniform:
          out[i] = static_cast<T>(uniform_of(bits, d.base, d.x_scale));
          break;
        case ValueDraw::Kind::kIntegers:
          out[i] = static_cast<T>(integer_of(bits, d.low, d.range));
          break;
        case ValueDraw::Kind::kSteps:
          out[i] = static_cast<T>(step_of(bits, d.base, d.x_scale, d.range));
          break;
        case ValueDraw::Kind::kBernoulli:
          out[i] = static_cast<T>(bernoulli_of(bits, d.range));
          break;
        default:
          ADD_FAILURE() << values.kind;
      }
    });
  EXPECT_EQ(std::count(written.begin(), written.end(), 1), static_cast<std::ptrdiff_t>(count));
  return out;
}

TEST(Values, AreThoseOfTheKernel) {
  for (const std::int64_t count : {1, 31, 32, 33, 255, 256, 257, 1000, 2048, 5003, 70001})
    for (const Word threads : {32, 256, 768, 4096}) {
      SCOPED_TRACE(std::to_string(count) + " elements, " + std::to_string(threads) + " threads");
      const std::size_t n = static_cast<std::size_t>(count);
      const std::uint64_t key = threads + n;
      const task::ValueSpec normal = spec("normal", {"0.5", "2"}), uniform = spec("uniform", {"-3", "1"});
      const task::ValueSpec integers = spec("integers", {"-5", "1000"}), bernoulli = spec("bernoulli");
      const auto reals = draw<float>(normal, Dtype::kFloat32, {count}, key);
      const auto same = draw_like_kernel<float>(normal, n, key, threads);
      EXPECT_EQ(std::memcmp(reals.data(), same.data(), n * sizeof(float)), 0);
      EXPECT_EQ(draw<float>(uniform, Dtype::kFloat32, {count}, key),
                draw_like_kernel<float>(uniform, n, key, threads));
      EXPECT_EQ(draw<std::int64_t>(integers, Dtype::kInt64, {count}, key),
                draw_like_kernel<std::int64_t>(integers, n, key, threads));
      EXPECT_EQ(draw<std::uint8_t>(bernoulli, Dtype::kUint8, {count}, key),
                draw_like_kernel<std::uint8_t>(bernoulli, n, key, threads));
      const task::ValueSpec choice = spec("choice", {"1", "0.5", "0", "-0.5"});
      EXPECT_EQ(draw<float>(choice, Dtype::kFloat32, {count}, key),
                draw_like_kernel<float>(choice, n, key, threads));
    }
}

task::ValueSpec spec_of(const std::string& kind, std::vector<task::ValueSpec> parts,
                        const std::vector<std::string>& arguments = {}) {
  task::ValueSpec values = spec(kind, arguments);
  values.parts = std::move(parts);
  return values;
}

TEST(Values, AChoiceIsOneOfItsNumbersEachAsLikely) {
  const auto v = draw<float>(spec("choice", {"-0.0", "1", "nan", "-inf"}), Dtype::kFloat32, {40'000}, 5);
  int zeros = 0, ones = 0, nans = 0, infinities = 0;
  for (const float value : v) {
    zeros += value == 0 && std::signbit(value);
    ones += value == 1;
    nans += std::isnan(value);
    infinities += std::isinf(value) && value < 0;
  }
  for (const int count : {zeros, ones, nans, infinities}) EXPECT_NEAR(count, 10'000, 450);  // five deviations
  EXPECT_EQ(zeros + ones + nans + infinities, 40'000);
  const auto ends = draw<std::int64_t>(spec("choice", {"0", "V - 1"}), Dtype::kInt64, {100}, 5, {{"V", 7}});
  EXPECT_EQ(std::set<std::int64_t>(ends.begin(), ends.end()), (std::set<std::int64_t>{0, 6}));
}

// Those of even numbers are what they were when the host looked each one up.
TEST(Values, AnEvenChoiceIsDrawnByKernels) {
  const auto even = spec("choice", {"0", "V - 1"}), uneven = spec("choice", {"0", "6", "0", "6"});
  EXPECT_FALSE(ValueSource::drawn_by_host(even, {{"V", 7}}));
  EXPECT_TRUE(ValueSource::drawn_by_host(uneven, {}));
  EXPECT_TRUE(ValueSource::drawn_by_host(spec("choice", {"-0.0", "0"}), {}));
  EXPECT_TRUE(ValueSource::drawn_by_host(spec("choice", {"-3e38", "3e38"}), {}));
  const auto a = draw<std::int64_t>(spec("choice", {"-1", "1"}), Dtype::kInt64, {1000}, 9);
  const auto b = draw<std::int64_t>(spec("integers", {"0", "2"}), Dtype::kInt64, {1000}, 9);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], 2 * b[i] - 1);
}

TEST(Values, AMixHasBothWithTheProbabilityAskedFor) {
  const auto values = spec_of("mix", {spec("choice", {"inf"}), spec("normal", {"0", "1"})}, {"1 / N"});
  const auto v = draw<float>(values, Dtype::kFloat32, {100, 100}, 5, {{"N", 20}});
  const auto infinite = std::count_if(v.begin(), v.end(), [](float value) { return std::isinf(value); });
  EXPECT_NEAR(static_cast<double>(infinite), 500, 110);
  std::vector<float> others;
  std::copy_if(v.begin(), v.end(), std::back_inserter(others), [](float x) { return std::isfinite(x); });
  EXPECT_NEAR(moments(others).deviation, 1, 0.03);
  const auto all = draw<float>(values, Dtype::kFloat32, {100}, 5, {{"N", 1}});
  EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](float value) { return std::isinf(value); }));
}

TEST(Values, RowsAreSortedEachByItselfWithNanLast) {
  const auto part = spec_of("mix", {spec("choice", {"nan", "-inf", "inf"}), spec("normal")}, {"0.2"});
  for (const bool down : {false, true}) {
    const auto v = draw<float>(spec_of(down ? "descending" : "sorted", {part}), Dtype::kFloat32, {50, 37}, 5);
    const auto plain = draw<float>(spec_of("sorted", {part}), Dtype::kFloat32, {1, 50 * 37}, 5);
    for (std::size_t row = 0; row < 50; ++row) {
      std::vector<float> one(v.begin() + static_cast<long>(row) * 37,
                             v.begin() + static_cast<long>(row + 1) * 37);
      if (down) std::reverse(one.begin(), one.end());
      const auto numbers = std::find_if(one.begin(), one.end(), [](float x) { return std::isnan(x); });
      EXPECT_TRUE(std::is_sorted(one.begin(), numbers));
      EXPECT_TRUE(std::all_of(numbers, one.end(), [](float x) { return std::isnan(x); }));
    }
    const auto count = [](const std::vector<float>& of) {
      return std::count_if(of.begin(), of.end(), [](float x) { return std::isnan(x); });
    };
    EXPECT_EQ(count(v), count(plain)) << "the same values in another order";
    EXPECT_GT(count(v), 50);
  }
}

TEST(Values, ByRowARowHasOneValue) {
  const auto v = draw<float>(spec_of("by_row", {spec("normal")}), Dtype::kFloat32, {40, 9}, 5);
  std::set<float> seen;
  for (std::size_t i = 0; i < v.size(); ++i) {
    EXPECT_EQ(v[i], v[i / 9 * 9]);
    seen.insert(v[i]);
  }
  EXPECT_EQ(seen.size(), 40u);
}

TEST(Values, WithinValuesAreOfEveryType) {
  const auto values =
      spec_of("sorted", {spec_of("mix", {spec("choice", {"0", "1"}), spec("ones")}, {"0.5"})});
  for (int dtype = 0; dtype <= static_cast<int>(Dtype::kBool); ++dtype) {
    const auto type = static_cast<Dtype>(dtype);
    std::vector<std::byte> bytes(1000 * task::size_of(type)), ones(bytes.size());
    value_source().fill(values, type, {10, 100}, {}, 3, bytes);
    value_source().fill(spec("ones"), type, {1000}, {}, 3, ones);
    for (std::size_t row = 0; row < 10; ++row) {
      std::size_t zeros = 0, ones_seen = 0;
      for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t at = (row * 100 + i) * task::size_of(type);
        const bool is_one = std::memcmp(&bytes[at], ones.data(), task::size_of(type)) == 0;
        EXPECT_TRUE(is_one || ones_seen == 0) << "zeros come first";
        zeros += !is_one;
        ones_seen += is_one;
      }
      EXPECT_NEAR(static_cast<double>(zeros), 25, 22) << to_string(type);
    }
  }
}

TEST(Values, FloatsOfHalfPrecisionAreTheRoundedFloats) {
  const auto halves = draw<std::uint16_t>(spec("ones"), Dtype::kFloat16, {4}, 1);
  EXPECT_EQ(halves, (std::vector<std::uint16_t>(4, 0x3C00)));
  const auto brains = draw<std::uint16_t>(spec("ones"), Dtype::kBfloat16, {2}, 1);
  EXPECT_EQ(brains, (std::vector<std::uint16_t>(2, 0x3F80)));
}

TEST(Values, NothingToFillIsNoTrouble) {
  EXPECT_TRUE(draw<float>(spec("normal"), Dtype::kFloat32, {0, 5}, 1).empty());
  EXPECT_TRUE(draw<std::int32_t>(spec("permutation"), Dtype::kInt32, {0}, 1).empty());
  EXPECT_TRUE(draw<float>(spec_of("by_row", {spec("normal")}), Dtype::kFloat32, {5, 0}, 1).empty());
}

TEST(Values, RefuseWhatMakesNoSense) {
  EXPECT_THROW(draw<float>(spec("gamma"), Dtype::kFloat32, {2}, 1), Error);
  EXPECT_THROW(draw<std::int64_t>(spec("integers", {"3", "3"}), Dtype::kInt64, {2}, 1), Error);
  EXPECT_THROW(draw<float>(spec("uniform", {"1", "0"}), Dtype::kFloat32, {2}, 1), Error);
  EXPECT_THROW(draw<std::uint8_t>(spec("bernoulli", {"1.5"}), Dtype::kBool, {2}, 1), Error);
  EXPECT_THROW(draw<std::int64_t>(spec("integers", {"0", "K"}), Dtype::kInt64, {2}, 1), Error);
}

TEST(InputKey, TellsTasksShapesInputsAndUsesApart) {
  task::Task a, b;
  a.id = "a";
  b.id = "b";
  std::set<std::uint64_t> keys;
  for (const std::uint64_t seed : {1, 2})
    for (const task::Task* task : {&a, &b})
      for (const task::Dims& dims : {task::Dims{{"M", 2}, {"N", 3}}, task::Dims{{"M", 3}, {"N", 2}}})
        for (const char* input : {"x", "y"})
          for (const std::uint64_t use : {0, 1}) keys.insert(input_key(seed, *task, dims, input, use));
  EXPECT_EQ(keys.size(), 32u);
}

}  // namespace
}  // namespace warpsmith::measure

#include "warpsmith/measure/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "warpsmith/base/error.h"

namespace warpsmith::measure {
namespace {

using task::Dtype;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

OutputValues reals(std::vector<double> values, Dtype dtype = Dtype::kFloat32,
                   std::vector<std::int64_t> shape = {}) {
  OutputValues out;
  out.dtype = dtype;
  out.shape = shape.empty() ? std::vector<std::int64_t>{static_cast<std::int64_t>(values.size())} : shape;
  out.reals = std::move(values);
  return out;
}

Comparison compare_floats(const std::vector<float>& got, const std::vector<double>& expected, double bound) {
  return compare(std::as_bytes(std::span(got)), reals(expected), bound);
}

TEST(Compare, WithinTheBoundAgrees) {
  const Comparison c = compare_floats({1.0f, 2.0f}, {1.0, 2.0 + 1e-4}, 2e-4);
  EXPECT_TRUE(c.agrees);
  EXPECT_NEAR(c.max_error, 1e-4, 1e-9);
}

TEST(Compare, TheWorstElementIsNamed) {
  const std::vector<float> got = {1, 2, 3, 4, 5.5f, 7};
  const OutputValues expected = reals({1, 2, 3, 4, 5, 6}, Dtype::kFloat32, {2, 3});
  const Comparison c = compare(std::as_bytes(std::span(got)), expected, 0.1);
  EXPECT_FALSE(c.agrees);
  EXPECT_EQ(c.wrong, 2);
  EXPECT_EQ(c.worst, 5);
  EXPECT_EQ(describe(c, "out", expected), "out[1, 2]: 7 where 6 was expected (2 of 6 elements are wrong)");
}

TEST(Compare, OfEqualErrorsTheFirstIsNamed) { EXPECT_EQ(compare_floats({1, 3, 3}, {1, 2, 2}, 0.5).worst, 1); }

TEST(Compare, NanAgreesWithNanAlone) {
  const float nan = std::nanf("");
  EXPECT_TRUE(compare_floats({nan, 1}, {kNan, 1}, 0.1).agrees);
  EXPECT_FALSE(compare_floats({0, 1}, {kNan, 1}, 1e9).agrees);
  const Comparison c = compare_floats({1, nan}, {1, 2}, 1e9);
  EXPECT_FALSE(c.agrees);
  EXPECT_EQ(c.worst, 1);
}

TEST(Compare, InfinityAgreesWithTheSameInfinityAlone) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compare_floats({inf, -inf}, {kInf, -kInf}, 0.1).agrees);
  EXPECT_FALSE(compare_floats({inf}, {-kInf}, 1e300).agrees);
  EXPECT_FALSE(compare_floats({inf}, {1e30}, 1e300).agrees);
  EXPECT_FALSE(compare_floats({3e38f}, {kInf}, 1e300).agrees);
}

TEST(Compare, TheSignOfAZeroCountsWhereTheTaskSaysSo) {
  OutputValues expected = reals({-0.0, 0.0, 1});
  const std::vector<float> same = {-0.f, 0.f, 1.25f}, other = {0.f, 0.f, 1}, off = {-0.25f, 0.25f, 1};
  const auto agrees = [&](const std::vector<float>& got) {
    return compare(std::as_bytes(std::span(got)), expected, 0.5).agrees;
  };
  EXPECT_TRUE(agrees(same) && agrees(other) && agrees(off));
  expected.signed_zeros = true;
  EXPECT_TRUE(agrees(same));
  EXPECT_TRUE(agrees(off)) << "it is no zero, and within the bound";
  EXPECT_FALSE(agrees(other));
  const Comparison c = compare(std::as_bytes(std::span(other)), expected, 0.5);
  EXPECT_EQ(describe(c, "out", expected), "out[0]: 0 where -0 was expected (1 of 3 elements are wrong)");
}

TEST(Compare, AnOracleValueBeyondTheTypeIsItsInfinity) {
  EXPECT_TRUE(compare_floats({std::numeric_limits<float>::infinity()}, {1e39}, 1).agrees);
  EXPECT_FALSE(compare_floats({3e38f}, {1e39}, 1).agrees);
}

TEST(Compare, PoisonIsNeverRight) {
  float poison;
  std::memset(&poison, 0xFF, sizeof poison);
  EXPECT_FALSE(compare_floats({poison}, {0.0}, 1e300).agrees);
}

TEST(Compare, IntegersExactly) {
  OutputValues expected;
  expected.dtype = Dtype::kInt64;
  expected.shape = {3};
  expected.integers = {1, std::numeric_limits<std::int64_t>::max(), -7};
  std::vector<std::int64_t> got = expected.integers;
  EXPECT_TRUE(compare(std::as_bytes(std::span(got)), expected, 0).agrees);
  got[1] -= 1;  // a double would not see it
  const Comparison c = compare(std::as_bytes(std::span(got)), expected, 1e9);
  EXPECT_FALSE(c.agrees);
  EXPECT_EQ(c.worst, 1);
}

TEST(Compare, ABoolIsZeroOrOne) {
  OutputValues expected;
  expected.dtype = Dtype::kBool;
  expected.shape = {2};
  expected.integers = {0, 1};
  const std::vector<std::uint8_t> good = {0, 1}, bad = {0, 255};
  EXPECT_TRUE(compare(std::as_bytes(std::span(good)), expected, 0).agrees);
  EXPECT_FALSE(compare(std::as_bytes(std::span(bad)), expected, 0).agrees);
}

TEST(Compare, HalvesAndBrainFloats) {
  const std::vector<std::uint16_t> half = {0x3C00, 0x7C00}, brain = {0x3F80, 0x7F80};  // 1, infinity
  EXPECT_TRUE(compare(std::as_bytes(std::span(half)), reals({1, 65536}, Dtype::kFloat16), 0).agrees);
  EXPECT_FALSE(compare(std::as_bytes(std::span(half)), reals({1, 65504}, Dtype::kFloat16), 1e9).agrees);
  EXPECT_TRUE(compare(std::as_bytes(std::span(brain)), reals({1, kInf}, Dtype::kBfloat16), 0).agrees);
}

TEST(Compare, AWrongSizeIsAFault) {
  const std::vector<float> got = {1};
  EXPECT_THROW(compare(std::as_bytes(std::span(got)), reals({1, 2}), 1), Error);
}

TEST(Compare, NoElementsAgree) { EXPECT_TRUE(compare_floats({}, {}, 0).agrees); }

TEST(DefaultBound, IsTenTimesTheReferencesOwnError) {
  EXPECT_NEAR(default_bound(reals({1.0, 2.001}), reals({1.0, 2.0})), 0.01, 1e-9);
}

TEST(DefaultBound, IsAtLeastTwentyUlpAtTheOutputsScale) {
  EXPECT_DOUBLE_EQ(default_bound(reals({1.5, 0.1}), reals({1.5, 0.1})), 20 * 0x1p-23);
  EXPECT_DOUBLE_EQ(default_bound(reals({1000, 1}), reals({1000, 1})),
                   20 * 0x1p-14);  // 1000 lies in [2^9, 2^10)
  EXPECT_DOUBLE_EQ(default_bound(reals({1}, Dtype::kBfloat16), reals({1}, Dtype::kBfloat16)), 20 * 0x1p-7);
  EXPECT_GT(default_bound(reals({0}), reals({0})), 0);
}

TEST(DefaultBound, IgnoresWhatIsNotFinite) {
  EXPECT_DOUBLE_EQ(default_bound(reals({kInf, kNan, 1}), reals({kInf, kNan, 1})), 20 * 0x1p-23);
  EXPECT_DOUBLE_EQ(default_bound(reals({kInf, 1}), reals({1e39, 1})), 20 * 0x1p-23);
}

TEST(DefaultBound, IntegersHaveNone) {
  OutputValues values;
  values.dtype = Dtype::kInt32;
  values.integers = {1};
  EXPECT_EQ(default_bound(values, values), 0);
}

TEST(Decode, GivesPlainNumbers) {
  const std::vector<float> floats = {1.5f, -2};
  EXPECT_EQ(decode(std::as_bytes(std::span(floats)), Dtype::kFloat32, {2}).reals,
            (std::vector<double>{1.5, -2}));
  const std::vector<std::int32_t> integers = {7, -1};
  EXPECT_EQ(decode(std::as_bytes(std::span(integers)), Dtype::kInt32, {2}).integers,
            (std::vector<std::int64_t>{7, -1}));
}

}  // namespace
}  // namespace warpsmith::measure

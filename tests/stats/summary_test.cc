#include "warpsmith/stats/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace warpsmith::stats {
namespace {

TEST(Summary, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
}

TEST(Summary, VarianceIsTheSampleVariance) {
  EXPECT_DOUBLE_EQ(variance(std::vector<double>{1, 2, 3, 4}), 5.0 / 3.0);
  EXPECT_EQ(variance(std::vector<double>{1}), 0);
  EXPECT_EQ(variance(std::vector<double>{}), 0);
  // Large numbers with small differences: the two-pass form keeps them.
  EXPECT_DOUBLE_EQ(variance(std::vector<double>{1e9 + 1, 1e9 + 2, 1e9 + 3}), 1.0);
}

TEST(Summary, QuantileIsLinearBetweenOrderStatistics) {
  const std::vector<double> values = {40, 10, 30, 20};
  EXPECT_EQ(quantile(values, 0), 10);
  EXPECT_EQ(quantile(values, 1), 40);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 17.5);  // numpy.quantile([40, 10, 30, 20], 0.25)
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 25);
  EXPECT_THROW(quantile(values, 1.5), std::invalid_argument);
  EXPECT_THROW(quantile(values, std::nan("")), std::invalid_argument);
}

TEST(Summary, GeometricMean) {
  EXPECT_DOUBLE_EQ(geometric_mean(std::vector<double>{1, 4, 16}), 4);
  EXPECT_EQ(geometric_mean(std::vector<double>{0, 5}), 0);
  EXPECT_THROW(geometric_mean(std::vector<double>{-1, 5}), std::invalid_argument);
  EXPECT_THROW(geometric_mean(std::vector<double>{}), std::invalid_argument);
}

TEST(Summary, SpreadHasAllOfThem) {
  const Spread spread = spread_of(std::vector<double>{1, 4, 16});
  EXPECT_EQ(spread.count, 3u);
  EXPECT_EQ(spread.mean, 7);
  EXPECT_DOUBLE_EQ(spread.geometric_mean, 4);
  EXPECT_EQ(spread.max, 16);
  EXPECT_EQ(spread.quantile75, 10);
  EXPECT_EQ(spread.median, 4);
  EXPECT_EQ(spread.quantile25, 2.5);
  EXPECT_THROW(spread_of(std::vector<double>{}), std::invalid_argument);
}

TEST(Summary, NothingHasNoMean) {
  EXPECT_THROW(mean(std::vector<double>{}), std::invalid_argument);
  EXPECT_THROW(median(std::vector<double>{}), std::invalid_argument);
  EXPECT_THROW(quantile(std::vector<double>{}, 0.5), std::invalid_argument);
}

TEST(RoundTowardOne, PaperExamples) {
  EXPECT_EQ(round_toward_one(1.118), 1.11);
  EXPECT_EQ(round_toward_one(0.992), 1.00);
}

TEST(RoundTowardOne, NeverMovesAwayFromOne) {
  EXPECT_EQ(round_toward_one(1.009999), 1.00);
  EXPECT_EQ(round_toward_one(0.881), 0.89);
  EXPECT_EQ(round_toward_one(1.0), 1.0);
  EXPECT_EQ(round_toward_one(368.1279), 368.12);
  EXPECT_EQ(round_toward_one(0.0004), 0.01);
}

TEST(RoundTowardOne, TwoDecimalsStayThemselves) {
  // 1.15 * 100 is 114.99999999999999 in binary: a plain floor gives 1.14.
  for (int hundredths = 1; hundredths <= 100000; ++hundredths) {
    const double value = hundredths / 100.0;
    ASSERT_EQ(round_toward_one(value), value) << hundredths;
    ASSERT_EQ(round_toward_one(std::nextafter(value, 0)), value) << hundredths;
    ASSERT_EQ(round_toward_one(std::nextafter(value, 1e9)), value) << hundredths;
  }
}

TEST(RoundTowardOne, WhatIsNoSpeedupIsZero) {
  EXPECT_EQ(round_toward_one(0), 0);
  EXPECT_EQ(round_toward_one(-2), 0);
  EXPECT_EQ(round_toward_one(std::nan("")), 0);
  EXPECT_EQ(round_toward_one(std::numeric_limits<double>::infinity()), 0);
}

}  // namespace
}  // namespace warpsmith::stats

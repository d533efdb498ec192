#include "warpsmith/stats/rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace warpsmith::stats {
namespace {

using Values = std::vector<double>;

TEST(RankCorrelation, IsOfTheOrderAlone) {
  EXPECT_DOUBLE_EQ(*rank_correlation(Values{1, 2, 30}, Values{-5, 0, 0.1}), 1);
  EXPECT_DOUBLE_EQ(*rank_correlation(Values{1, 2, 30}, Values{3, 2, 1}), -1);
  // 1 - 6 Σd² / (n (n² - 1)), d = 1, 1, 0, 1, 1
  EXPECT_DOUBLE_EQ(*rank_correlation(Values{1, 2, 3, 4, 5}, Values{2, 1, 3, 5, 4}), 0.8);
}

// scipy.stats.spearmanr gives the same.
TEST(RankCorrelation, EqualValuesHaveTheMeanOfTheirRanks) {
  EXPECT_NEAR(*rank_correlation(Values{1, 1, 2, 3}, Values{1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5), 1e-12);
}

TEST(RankCorrelation, OfTooFewOrEqualValuesThereIsNone) {
  EXPECT_FALSE(rank_correlation(Values{}, Values{}));
  EXPECT_FALSE(rank_correlation(Values{1, 2}, Values{1, 2}));
  EXPECT_FALSE(rank_correlation(Values{1, 1, 1}, Values{1, 2, 3}));
  EXPECT_THROW(rank_correlation(Values{1, 2, 3}, Values{1, 2}), std::invalid_argument);
  EXPECT_THROW(rank_correlation(Values{1, 2, NAN}, Values{1, 2, 3}), std::invalid_argument);
}

}  // namespace
}  // namespace warpsmith::stats

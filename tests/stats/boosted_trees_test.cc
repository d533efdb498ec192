#include "warpsmith/stats/boosted_trees.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "warpsmith/base/random.h"

namespace warpsmith::stats {
namespace {

struct Made {
  std::vector<std::vector<double>> rows;
  std::vector<double> targets;
};

// Two features matter, one of them only together with the other; a third is noise, the last is constant.
Made make_data(std::uint64_t key, int n) {
  Random random(key);
  Made made;
  for (int i = 0; i < n; ++i) {
    const double a = std::floor(8 * random.uniform()), b = random.uniform(), noise = random.normal();
    made.rows.push_back({a, b, noise, 4});
    made.targets.push_back((a > 3 ? 1 : -1) * (b > 0.5 ? 1 : 0.2) + 0.1 * random.normal());
  }
  return made;
}

double squared_error(const BoostedTrees& model, const Made& made) {
  double sum = 0;
  for (std::size_t i = 0; i < made.rows.size(); ++i)
    sum += std::pow(model.predict(made.rows[i]) - made.targets[i], 2);
  return sum / static_cast<double>(made.rows.size());
}

TEST(BoostedTrees, PredictWhatTheyHaveNotSeen) {
  const Made seen = make_data(1, 200), unseen = make_data(2, 200);
  const double error = squared_error(BoostedTrees(seen.rows, seen.targets), unseen);
  const double of_mean = squared_error(BoostedTrees(seen.rows, seen.targets, {.trees = 0}), unseen);
  EXPECT_GT(of_mean, 0.4);  // its variance is (1 + 0.04) / 2 and the noise's
  EXPECT_LT(error, of_mean / 10);
  const double of_stumps = squared_error(BoostedTrees(seen.rows, seen.targets, {.depth = 1}), unseen);
  EXPECT_GT(of_stumps, 2 * error) << "what two features are together, no sum of stumps says";
}

TEST(BoostedTrees, EqualRowsGiveEqualPredictions) {
  const Made made = make_data(3, 150);
  const BoostedTrees a(made.rows, made.targets), b(made.rows, made.targets);
  for (const auto& row : make_data(4, 50).rows) EXPECT_EQ(a.predict(row), b.predict(row));
}

TEST(BoostedTrees, WhatCannotBeToldApartIsTheMean) {
  const std::vector<std::vector<double>> rows(20, {1, 2});
  std::vector<double> targets;
  for (int i = 0; i < 20; ++i) targets.push_back(i);
  const BoostedTrees model(rows, targets);
  EXPECT_DOUBLE_EQ(model.predict(rows[0]), 9.5);
  EXPECT_DOUBLE_EQ(model.predict(std::vector<double>{7, -7}), 9.5);
  EXPECT_DOUBLE_EQ(BoostedTrees({{}, {}}, std::vector<double>{1, 3}).predict({}), 2) << "no feature";
}

TEST(BoostedTrees, LeavesHaveAsManyRowsAsTheyMust) {
  std::vector<std::vector<double>> rows;
  std::vector<double> targets;
  for (int i = 0; i < 9; ++i) {
    rows.push_back({static_cast<double>(i)});
    targets.push_back(i == 8 ? 100 : 0);
  }
  EXPECT_DOUBLE_EQ(BoostedTrees(rows, targets).predict(rows[8]), 100.0 / 9) << "nine rows are not cut";
  EXPECT_GT(BoostedTrees(rows, targets, {.least_leaf = 1}).predict(rows[8]), 99);
}

TEST(BoostedTrees, WithoutRowsItIsZero) {
  EXPECT_EQ(BoostedTrees({}, {}).predict(std::vector<double>{1, 2}), 0);
  EXPECT_EQ(BoostedTrees().predict(std::vector<double>{1, 2}), 0);
}

TEST(BoostedTrees, WhatIsNoTableIsRefused) {
  EXPECT_THROW(BoostedTrees({{1}, {1, 2}}, std::vector<double>{1, 2}), std::invalid_argument);
  EXPECT_THROW(BoostedTrees({{1}}, std::vector<double>{1, 2}), std::invalid_argument);
  EXPECT_THROW(BoostedTrees({{NAN}}, std::vector<double>{1}), std::invalid_argument);
  EXPECT_THROW(BoostedTrees({{1}}, std::vector<double>{INFINITY}), std::invalid_argument);
  const Made made = make_data(5, 50);
  EXPECT_THROW(BoostedTrees(made.rows, made.targets).predict(std::vector<double>{1}), std::invalid_argument);
}

}  // namespace
}  // namespace warpsmith::stats

// A regression that needs no library: gradient-boosted trees for squared error (Friedman 2001). Pure: the
// same rows in the same order give the same model.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace warpsmith::stats {

struct BoostSettings {
  int trees = 100, depth = 3;
  int least_leaf = 5;  // rows
  int most_cuts = 32;  // of a feature, at quantiles of its values
  double rate = 0.1;   // what a tree adds of what is left
};

class BoostedTrees {
 public:
  BoostedTrees() = default;  // predicts 0
  // One target a row; all rows have as many features. Throws std::invalid_argument where they do not, or a
  // number is not finite.
  BoostedTrees(const std::vector<std::vector<double>>& rows, std::span<const double> targets,
               const BoostSettings& settings = {});
  // Without rows 0; else of a row with as many features. Throws std::invalid_argument for another.
  double predict(std::span<const double> row) const;

 private:
  struct Node {
    std::size_t feature = 0;
    double cut = 0;            // left: at most this
    int left = -1, right = 0;  // indices into the tree; left -1: a leaf
    double value = 0;
  };
  using Tree = std::vector<Node>;
  static const Node& leaf_of(const Tree& tree, std::span<const double> row);

  std::size_t features_ = 0;
  double base_ = 0;  // mean of the targets
  std::vector<Tree> trees_;

  friend class TreeGrower;
};

}  // namespace warpsmith::stats

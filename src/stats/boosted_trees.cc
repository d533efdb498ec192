#include "warpsmith/stats/boosted_trees.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "warpsmith/stats/summary.h"

namespace warpsmith::stats {

namespace {

constexpr double kLeastGain = 1e-12;  // of squared error; less is rounding

// Places to cut a feature: between neighbouring values, or at quantiles where there are many.
std::vector<double> cuts_of(std::vector<double> values, int most) {
  std::sort(values.begin(), values.end());
  std::vector<double> distinct = values;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<double> cuts;
  const auto wanted = static_cast<std::size_t>(most);
  if (distinct.size() <= wanted + 1) {
    for (std::size_t i = 1; i < distinct.size(); ++i) cuts.push_back((distinct[i - 1] + distinct[i]) / 2);
    return cuts;
  }
  for (std::size_t i = 1; i <= wanted; ++i) cuts.push_back(values[i * (values.size() - 1) / (wanted + 1)]);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

void require_table(const std::vector<std::vector<double>>& rows, std::span<const double> targets) {
  const auto is_finite = [](double v) { return std::isfinite(v); };
  bool good = rows.size() == targets.size() && std::all_of(targets.begin(), targets.end(), is_finite);
  for (const std::vector<double>& row : rows)
    good = good && row.size() == rows.front().size() && std::all_of(row.begin(), row.end(), is_finite);
  if (!good) throw std::invalid_argument("boosted trees: rows of unlike length, or a number is not finite");
}

}  // namespace

// Grows one tree after the other on what the trees before have left.
class TreeGrower {
 public:
  TreeGrower(const std::vector<std::vector<double>>& rows, const BoostSettings& settings)
      : settings_(settings), bins_(rows.front().size()), cuts_(rows.front().size()) {
    for (std::size_t f = 0; f < cuts_.size(); ++f) {
      std::vector<double> values;
      for (const std::vector<double>& row : rows) values.push_back(row[f]);
      cuts_[f] = cuts_of(values, settings.most_cuts);
      for (const double v : values)
        bins_[f].push_back(static_cast<std::size_t>(std::lower_bound(cuts_[f].begin(), cuts_[f].end(), v) -
                                                    cuts_[f].begin()));
    }
  }

  // Takes what it predicts from `left`.
  BoostedTrees::Tree grow(std::vector<double>& left) const {
    BoostedTrees::Tree tree;
    std::vector<std::size_t> rows(left.size());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
    add_node(tree, rows, left, settings_.depth);
    return tree;
  }

 private:
  struct Split {
    std::size_t feature = 0, cut = 0;
    double gain = kLeastGain;
    bool found = false;
  };

  Split best_split(const std::vector<std::size_t>& rows, const std::vector<double>& left) const {
    Split best;
    double sum = 0;
    for (const std::size_t i : rows) sum += left[i];
    const auto n = static_cast<double>(rows.size());
    for (std::size_t f = 0; f < cuts_.size(); ++f) {
      std::vector<double> sums(cuts_[f].size() + 1), counts(cuts_[f].size() + 1);
      for (const std::size_t i : rows) {
        sums[bins_[f][i]] += left[i];
        counts[bins_[f][i]] += 1;
      }
      double s = 0, c = 0;
      for (std::size_t cut = 0; cut < cuts_[f].size(); ++cut) {
        s += sums[cut];
        c += counts[cut];
        if (c < settings_.least_leaf || n - c < settings_.least_leaf) continue;
        const double gain = s * s / c + (sum - s) * (sum - s) / (n - c) - sum * sum / n;
        if (gain > best.gain) best = {f, cut, gain, true};
      }
    }
    return best;
  }

  int add_node(BoostedTrees::Tree& tree, const std::vector<std::size_t>& rows, std::vector<double>& left,
               int depth) const {
    const auto at = static_cast<int>(tree.size());
    tree.emplace_back();
    const Split split = depth > 0 ? best_split(rows, left) : Split{};
    if (!split.found) {
      double sum = 0;
      for (const std::size_t i : rows) sum += left[i];
      const double value = settings_.rate * sum / static_cast<double>(rows.size());
      for (const std::size_t i : rows) left[i] -= value;
      tree.back().value = value;
      return at;
    }
    std::vector<std::size_t> low, high;
    for (const std::size_t i : rows) (bins_[split.feature][i] <= split.cut ? low : high).push_back(i);
    const int below = add_node(tree, low, left, depth - 1);
    const int above = add_node(tree, high, left, depth - 1);
    tree[static_cast<std::size_t>(at)] = {split.feature, cuts_[split.feature][split.cut], below, above, 0};
    return at;
  }

  const BoostSettings& settings_;
  std::vector<std::vector<std::size_t>> bins_;  // by feature and row: cuts that are below the value
  std::vector<std::vector<double>> cuts_;
};

BoostedTrees::BoostedTrees(const std::vector<std::vector<double>>& rows, std::span<const double> targets,
                           const BoostSettings& settings) {
  require_table(rows, targets);
  if (rows.empty()) return;
  features_ = rows.front().size();
  base_ = mean(targets);
  std::vector<double> left;
  for (const double target : targets) left.push_back(target - base_);
  const TreeGrower grower(rows, settings);
  for (int i = 0; i < settings.trees; ++i) {
    trees_.push_back(grower.grow(left));
    if (trees_.back().size() == 1) break;  // nothing is left that a cut tells apart
  }
}

const BoostedTrees::Node& BoostedTrees::leaf_of(const Tree& tree, std::span<const double> row) {
  const Node* node = &tree.front();
  while (node->left >= 0)
    node = &tree[static_cast<std::size_t>(row[node->feature] <= node->cut ? node->left : node->right)];
  return *node;
}

double BoostedTrees::predict(std::span<const double> row) const {
  if (!trees_.empty() && row.size() != features_)
    throw std::invalid_argument("boosted trees: a row of another length");
  double sum = base_;
  for (const Tree& tree : trees_) sum += leaf_of(tree, row).value;
  return sum;
}

}  // namespace warpsmith::stats

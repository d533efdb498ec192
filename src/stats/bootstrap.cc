#include "warpsmith/stats/bootstrap.h"

#include <random>
#include <stdexcept>

#include "warpsmith/stats/summary.h"

namespace warpsmith::stats {

namespace {

void check_cells(const std::vector<std::vector<double>>& cells) {
  if (cells.empty() || cells.front().empty()) throw std::invalid_argument("bootstrap of no cells");
  for (const std::vector<double>& row : cells)
    if (row.size() != cells.front().size()) throw std::invalid_argument("bootstrap: rows differ in length");
}

// How often each of `count` clusters is drawn in `count` draws. std::uniform_int_distribution differs between
// standard libraries; the remainder of 64 random bits does not, and its bias is below 1e-15 here.
std::vector<double> draw_weights(std::size_t count, std::mt19937_64& random) {
  std::vector<double> weights(count, 0.0);
  for (std::size_t i = 0; i < count; ++i) weights[random() % count] += 1;
  return weights;
}

double weighted_mean(const std::vector<std::vector<double>>& cells, const std::vector<double>& rows,
                     const std::vector<double>& columns) {
  double sum = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    double row = 0;
    for (std::size_t j = 0; j < columns.size(); ++j) row += columns[j] * cells[i][j];
    sum += rows[i] * row;
  }
  return sum / static_cast<double>(cells.size() * columns.size());
}

}  // namespace

BootstrapInterval bootstrap_mean(const std::vector<std::vector<double>>& cells,
                                 const BootstrapSettings& settings) {
  check_cells(cells);
  if (settings.resamples < 1 || !(settings.level > 0 && settings.level < 1))
    throw std::invalid_argument("bootstrap: resamples or level make no sense");
  const std::size_t rows = cells.size(), columns = cells.front().size();
  BootstrapInterval interval;
  interval.estimate = weighted_mean(cells, std::vector<double>(rows, 1.0), std::vector<double>(columns, 1.0));
  std::mt19937_64 random(settings.seed);
  std::vector<double> means;
  means.reserve(static_cast<std::size_t>(settings.resamples));
  for (int i = 0; i < settings.resamples; ++i) {
    const std::vector<double> row_weights = draw_weights(rows, random);
    means.push_back(weighted_mean(cells, row_weights, draw_weights(columns, random)));
  }
  interval.low = quantile(means, (1 - settings.level) / 2);
  interval.high = quantile(means, (1 + settings.level) / 2);
  return interval;
}

BootstrapInterval paired_bootstrap(const std::vector<std::vector<double>>& before,
                                   const std::vector<std::vector<double>>& after,
                                   const BootstrapSettings& settings) {
  check_cells(before);
  check_cells(after);
  if (before.size() != after.size() || before.front().size() != after.front().size())
    throw std::invalid_argument("paired bootstrap: the shapes differ");
  std::vector<std::vector<double>> differences = after;
  for (std::size_t i = 0; i < before.size(); ++i)
    for (std::size_t j = 0; j < before[i].size(); ++j) differences[i][j] -= before[i][j];
  return bootstrap_mean(differences, settings);
}

}  // namespace warpsmith::stats

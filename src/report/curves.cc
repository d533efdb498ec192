#include "curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "plot.h"
#include "version_order.h"
#include "warpsmith/report/devices.h"
#include "warpsmith/report/draws.h"
#include "warpsmith/stats/fast_p.h"

namespace warpsmith::report {

namespace {

constexpr double kLeastPower = -4, kMostPower = 6, kBinsAPower = 4;
constexpr std::size_t kMostPoints = 300;
constexpr double kMostP = 8;

// Plots with one legend.
std::string curves_html(const std::string& id, const std::vector<Plot>& plots) {
  std::string out;
  std::vector<std::string> names;
  for (const PlotLine& line : plots.front().lines) names.push_back(line.name);
  for (const Plot& plot : plots) out += plot_figure(plot);
  return plot_legend(names) + "<div class=\"panels\" id=\"" + id + "\">\n" + out + "</div>\n";
}

std::string nothing(const char* of) { return fmt::format("<p class=\"note\">No plot: {}.</p>\n", of); }

std::vector<PlotPoint> histogram(const std::vector<double>& speedups) {
  std::map<int, double> bins;
  for (const double speedup : speedups) {
    const double power = std::clamp(std::log2(speedup), kLeastPower, kMostPower - 1 / kBinsAPower);
    bins[static_cast<int>(std::floor(power * kBinsAPower))] += 1.0 / static_cast<double>(speedups.size());
  }
  std::vector<PlotPoint> points;
  for (const auto& [bin, share] : bins) {
    if (!bins.contains(bin - 1)) points.push_back({bin / kBinsAPower, 0, {}});
    points.push_back({bin / kBinsAPower, share, {}});
    if (!bins.contains(bin + 1)) points.push_back({(bin + 1) / kBinsAPower, 0, {}});
  }
  return points;
}

std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& all) {
  const std::size_t each = (all.size() + kMostPoints - 1) / kMostPoints;
  std::vector<PlotPoint> points;
  for (std::size_t from = 0; from < all.size(); from += each) {
    const std::size_t end = std::min(all.size(), from + each);
    double sum = 0;
    for (std::size_t i = from; i < end; ++i) sum += all[i].y;
    points.push_back({all[end - 1].x, sum / static_cast<double>(end - from), {}});
  }
  return points;
}

}  // namespace

std::string speedups_plot(const store::Results& results) {
  VersionOrder order(results);
  std::map<std::size_t, std::vector<double>> speedups;
  for (const store::SampleRow& sample : results.generated)
    if (is_draw(sample) && is_novel(sample) && sample.speedup > 0)
      speedups[order.place(sample.stage, sample.hash8)].push_back(sample.speedup);
  if (speedups.empty()) return nothing("no novel correct program was drawn");
  Plot plot{.caption = "Speedups of novel correct programs: share of a stage's",
            .ticks = {},
            .lines = {},
            .curves = true,
            .steps = true};
  double least = kMostPower, most = kLeastPower;
  for (const auto& [place, of] : speedups) {
    const auto& [stage, hash8] = order.at(place);
    plot.lines.push_back({stage + twin_mark(results, stage, hash8), histogram(of)});
    least = std::min(least, plot.lines.back().points.front().x);
    most = std::max(most, plot.lines.back().points.back().x);
  }
  plot.first = std::floor(least);
  plot.last = std::ceil(most);
  for (double power = plot.first; power <= plot.last; ++power)
    plot.ticks.emplace_back(power, fmt::format("{:g}×", std::exp2(power)));
  return curves_html("plot-speedups", {plot});
}

std::string losses_plot(const store::Results& results) {
  VersionOrder order(results);
  std::map<std::size_t, std::vector<PlotPoint>> losses;
  for (const store::TrainingRow& row : results.training)
    losses[order.place(row.stage, row.hash8)].push_back({static_cast<double>(row.step), row.loss, {}});
  if (losses.empty()) return nothing("no stage has trained");
  Plot plot{.caption = "Loss by optimiser step",
            .scale = PlotScale::kValue,
            .first = 0,
            .last = 1,
            .ticks = {},
            .lines = {},
            .curves = true};
  for (const auto& [place, points] : losses) {
    plot.lines.push_back({order.at(place).first, thinned(points)});
    plot.last = std::max(plot.last, points.back().x);
  }
  const double step = nice_step(plot.last / 5);
  for (double at = 0; at <= plot.last; at += step) plot.ticks.emplace_back(at, fmt::format("{:g}", at));
  return curves_html("plot-loss", {plot});
}

std::string fast_p_plots(const std::vector<FastPRow>& rows) {
  std::map<std::string, Plot> of_group;
  std::vector<std::string> groups, names;
  double end = 2;
  for (const FastPRow& row : rows) {
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end()) groups.push_back(row.group);
    const std::string name = row.stage + (row.authors == "model" ? "" : ", whoever wrote them");
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    for (const double speedup : row.speedups) end = std::max(end, speedup);
  }
  end = std::min(kMostP, std::ceil(1.1 * end));
  std::vector<Plot> plots;
  for (const std::string& group : groups) {
    Plot plot{.caption = group + ": share of all tasks with a correct program over p times as fast",
              .first = 0,
              .last = end,
              .ticks = {},
              .lines = {},
              .curves = true,
              .steps = true};
    for (double p = 0; p <= end; ++p) plot.ticks.emplace_back(p, fmt::format("{:g}", p));
    for (const std::string& name : names) plot.lines.push_back({name, {}});  // one colour in all plots
    for (const FastPRow& row : rows) {
      if (row.group != group) continue;
      const std::string name = row.stage + (row.authors == "model" ? "" : ", whoever wrote them");
      PlotLine& line =
          plot.lines[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
      for (const auto& [p, share] : stats::fast_p_curve(row.speedups, static_cast<std::size_t>(row.tasks)))
        if (p <= end) line.points.push_back({p, share, {}});
      if (!line.points.empty()) line.points.push_back({end, line.points.back().y, {}});
    }
    plots.push_back(std::move(plot));
  }
  return curves_html("plot-fast-p", plots);
}

}  // namespace warpsmith::report

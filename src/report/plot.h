// Plots of figures with their intervals as SVG, drawn here: they need no script and no library. Colours are
// those of report.css.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/stats/interval.h"

namespace warpsmith::report {

struct PlotPoint {
  double x = 0, y = 0;
  std::optional<stats::Interval> interval;
};

struct PlotLine {
  std::string name;
  std::vector<PlotPoint> points;  // from left to right; a line without any keeps its colour
};

enum class PlotScale { kShare, kSpeedup, kValue };  // from 0, in percent; from 1×; from the least value

struct Plot {
  std::string caption;
  PlotScale scale = PlotScale::kShare;
  double first = 0, last = 1;                         // of the x axis
  std::vector<std::pair<double, std::string>> ticks;  // below it, from left to right
  std::vector<PlotLine> lines;
  bool curves = false;  // of many points: no marks, and no line beside its place
  bool steps = false;   // each value holds up to the next point
};

// The least of 1, 2, 2.5 and 5 times a power of ten that is no less than `least` (over 0).
double nice_step(double least);

// A <figure>. Lines stand a little beside each other, so that their intervals can be told apart.
std::string plot_figure(const Plot& plot);
// Marks and names of the lines, as all plots of a row have them.
std::string plot_legend(const std::vector<std::string>& names);

}  // namespace warpsmith::report

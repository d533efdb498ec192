#include "plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "html_text.h"

namespace warpsmith::report {

namespace {

// In units of the view box, which are pixels where a plot is as wide as on a telephone.
constexpr double kWidth = 360, kLeft = 46, kRight = 8, kTop = 8, kPlotHeight = 170;
constexpr double kLetterWidth = 6;
constexpr std::size_t kLongestLabel = 16;
constexpr double kDodge = 6;  // between lines at one place, at most

// Told apart without colours, too.
constexpr std::array kMarks = {"M-3.3 0a3.3 3.3 0 1 0 6.6 0a3.3 3.3 0 1 0-6.6 0z",
                               "M-3-3h6v6h-6z",
                               "M0-4.3L4.3 0L0 4.3L-4.3 0z",
                               "M0-4L4 3.2H-4z",
                               "M0 4L4-3.2H-4z",
                               "M-1.2-4h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z"};

std::size_t style_of(std::size_t line) { return line % kMarks.size(); }

struct YAxis {
  double low = 0, high = 1, step = 0.25;
};

YAxis y_axis(const Plot& plot) {
  const bool share = plot.scale == PlotScale::kShare, value = plot.scale == PlotScale::kValue;
  constexpr double kFar = std::numeric_limits<double>::max();
  YAxis axis{share ? 0.0 : value ? kFar : 1.0, share ? 0.02 : value ? -kFar : 1.02, 0};
  for (const PlotLine& line : plot.lines)
    for (const PlotPoint& point : line.points) {
      axis.high = std::max({axis.high, point.y, point.interval ? point.interval->high : point.y});
      if (value) axis.low = std::min(axis.low, point.y);
    }
  if (axis.low > axis.high) axis.low = axis.high = 0;  // no point
  if (value) axis.high = std::max(axis.high, axis.low + std::max(1e-3, 1e-3 * std::abs(axis.low)));
  axis.step = nice_step((axis.high - axis.low) / 4);
  if (value) axis.low = axis.step * std::floor(axis.low / axis.step + 1e-9);
  axis.high = axis.low + axis.step * std::ceil((axis.high - axis.low) / axis.step - 1e-9);
  if (share) axis.high = std::min(axis.high, 1.0);
  return axis;
}

std::string y_text(double value, const YAxis& axis, PlotScale scale) {
  const double unit = scale == PlotScale::kShare ? 100 : 1;
  int decimals = 0;  // as many as the steps have
  for (double step = axis.step * unit; decimals < 4 && std::abs(step - std::round(step)) > 1e-6; step *= 10)
    ++decimals;
  const char* const after = scale == PlotScale::kShare ? " %" : scale == PlotScale::kSpeedup ? "×" : "";
  return fmt::format("{:.{}f}{}", value * unit, decimals, after);
}

std::string value_text(const PlotPoint& point, PlotScale scale) {
  const auto one = [&](double value) {
    return scale == PlotScale::kShare ? percent(value) : fmt::format("{:.3f}×", value);
  };
  if (!point.interval) return one(point.y);
  return one(point.y) + " [" + one(point.interval->low) + ", " + one(point.interval->high) + "]";
}

std::string shortened(const std::string& label) {
  return label.size() <= kLongestLabel ? label : label.substr(0, kLongestLabel - 1) + "…";
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot), axis_(y_axis(plot)) {
    std::size_t longest = 0;
    for (const auto& [at, label] : plot.ticks)
      longest = std::max(longest, std::min(label.size(), kLongestLabel));
    label_width_ = kLetterWidth * static_cast<double>(longest);
    slot_ = (kWidth - kLeft - kRight) / static_cast<double>(std::max<std::size_t>(1, plot.ticks.size()));
    tilted_ = label_width_ > slot_;
  }

  std::string svg() const {
    const double height = kTop + kPlotHeight + (tilted_ ? 12 + 0.55 * label_width_ : 20);
    std::string out = fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                                  height, escape(plot_.caption));
    out += axes();
    for (std::size_t i = 0; i < plot_.lines.size(); ++i) out += plot_.curves ? curve(i) : line(i);
    return out + "</svg>";
  }

 private:
  double x_of(double x) const {
    return kLeft + (kWidth - kLeft - kRight) * (x - plot_.first) / (plot_.last - plot_.first);
  }
  double y_of(double y) const {
    const double share = (y - axis_.low) / (axis_.high - axis_.low);
    return kTop + kPlotHeight * (1 - std::clamp(share, 0.0, 1.0));
  }

  std::string axes() const {
    std::string out;
    for (int i = 0; axis_.low + i * axis_.step <= axis_.high + 1e-9; ++i) {
      const double value = axis_.low + i * axis_.step;
      out += fmt::format(
          "<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{}</text>\n",
          kLeft, y_of(value), kWidth - kRight, kLeft - 5, y_of(value) + 4, y_text(value, axis_, plot_.scale));
    }
    const double below = kTop + kPlotHeight + 14;
    for (const auto& [at, label] : plot_.ticks) {
      const std::string place =
          tilted_ ? fmt::format("transform=\"translate({:.1f} {:.1f}) rotate(-30)\" text-anchor=\"end\"",
                                x_of(at) + 4, below - 2)
                  : fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\"", x_of(at), below);
      out += fmt::format("<text {}>{}</text>\n", place, escape(shortened(label)));
    }
    return out;
  }

  std::string curve(std::size_t index) const {
    std::string path;
    for (const PlotPoint& point : plot_.lines[index].points) {
      const double x = x_of(point.x), y = y_of(point.y);
      path += path.empty()  ? fmt::format("M{:.1f} {:.1f}", x, y)
              : plot_.steps ? fmt::format("H{:.1f}V{:.1f}", x, y)
                            : fmt::format("L{:.1f} {:.1f}", x, y);
    }
    if (path.empty()) return "";
    return fmt::format("<path class=\"line line-{}\" d=\"{}\"{}><title>{}</title></path>\n", style_of(index),
                       path, index < kMarks.size() ? "" : " stroke-dasharray=\"4 3\"",
                       escape(plot_.lines[index].name));
  }

  std::string line(std::size_t index) const {
    const PlotLine& of = plot_.lines[index];
    const auto count = static_cast<double>(plot_.lines.size());
    const double aside =
        (static_cast<double>(index) - (count - 1) / 2) * std::min(kDodge, 0.7 * slot_ / count);
    std::string path, points;
    for (const PlotPoint& point : of.points) {
      const double x = x_of(point.x) + aside, y = y_of(point.y);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', x, y);
      points += fmt::format("<g><title>{}: {}</title>", escape(of.name), value_text(point, plot_.scale));
      if (point.interval)
        points += fmt::format("<path class=\"interval\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>", x,
                              y_of(point.interval->low), y_of(point.interval->high));
      points += fmt::format("<path class=\"mark\" transform=\"translate({:.1f} {:.1f})\" d=\"{}\"/></g>\n", x,
                            y, kMarks[style_of(index)]);
    }
    if (path.empty()) return "";
    return fmt::format("<g class=\"line-{}\"><path class=\"line\" d=\"{}\"/>\n{}</g>\n", style_of(index),
                       path, points);
  }

  const Plot& plot_;
  const YAxis axis_;
  double label_width_ = 0, slot_ = 0;
  bool tilted_ = false;
};

}  // namespace

double nice_step(double least) {
  const double unit = std::pow(10, std::floor(std::log10(least)));
  for (const double nice : {1.0, 2.0, 2.5, 5.0})
    if (nice * unit >= least * (1 - 1e-9)) return nice * unit;
  return 10 * unit;
}

std::string plot_figure(const Plot& plot) {
  return "<figure><figcaption>" + escape(plot.caption) + "</figcaption>" + Drawing(plot).svg() +
         "</figure>\n";
}

std::string plot_legend(const std::vector<std::string>& names) {
  std::string out = "<p class=\"legend\">";
  for (std::size_t i = 0; i < names.size(); ++i)
    out += fmt::format(
        "<span class=\"line-{}\"><svg viewBox=\"-6 -6 12 12\"><path class=\"mark\" "
        "d=\"{}\"/></svg>{}</span>\n",
        style_of(i), kMarks[style_of(i)], escape(names[i]));
  return out + "</p>\n";
}

}  // namespace warpsmith::report

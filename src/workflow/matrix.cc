#include "matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "warpsmith/base/text.h"

namespace warpsmith::workflow {

namespace {

using yaml::Entry;
using yaml::mistake_at;
using yaml::Node;

// A plain number as its value: 0.5 and 0.50 are one. Other values are their text.
std::string key_of(const Node& value) {
  const Json json = yaml::to_json(value);
  if (json.is_number_integer()) return fmt::format("{}", json.get<std::int64_t>());
  if (!json.is_number()) return value.text();
  const double number = json.get<double>() + 0.0;  // -0.0 is 0
  if (std::abs(number) < 0x1p53 && number == std::trunc(number))
    return fmt::format("{}", static_cast<std::int64_t>(number));
  return fmt::format("{}", number);
}

bool same_value(const Node& a, const Node& b) { return a.text() == b.text() || key_of(a) == key_of(b); }

bool agrees(const MatrixPoint& point, const MatrixPoint& part) {
  return std::all_of(part.begin(), part.end(), [&](const auto& entry) {
    const auto it = point.find(entry.first);
    return it != point.end() && same_value(it->second, entry.second);
  });
}

// Values of one axis; empty where there is a mistake.
std::vector<Node> axis_values(const Entry& entry, Diagnostics& mistakes) {
  if (!entry.value.is_sequence()) {
    mistakes.push_back(
        mistake_at(entry.value.place(), fmt::format("axis `{}`: expected a list of values, found {}",
                                                    entry.key, yaml::describe(entry.value))));
    return {};
  }
  if (entry.value.items().empty()) {
    mistakes.push_back(mistake_at(entry.value.place(), fmt::format("axis `{}` has no values", entry.key)));
    return {};
  }
  std::map<std::string, std::string> seen;  // text, and value, to the text
  for (const Node& value : entry.value.items()) {
    if (!value.is_scalar()) {
      mistakes.push_back(
          mistake_at(value.place(), fmt::format("axis `{}`: a value must be a word or a number, found {}",
                                                entry.key, yaml::describe(value))));
      return {};
    }
    auto before = seen.find(value.text());
    if (before == seen.end()) before = seen.find(key_of(value));
    if (before != seen.end()) {
      mistakes.push_back(
          mistake_at(value.place(), fmt::format("axis `{}` has the value {} twice", entry.key, value.text()),
                     before->second == value.text() ? "" : fmt::format("first as {}", before->second)));
      return {};
    }
    seen.emplace(value.text(), value.text());
    seen.emplace(key_of(value), value.text());
  }
  return entry.value.items();
}

// One element of `include` or `exclude`. `whole`: every axis must have a value, any value.
std::optional<MatrixPoint> read_point(const Node& node, const std::string& where,
                                      const std::vector<std::string>& axes,
                                      const std::map<std::string, std::vector<Node>>& values, bool whole,
                                      Diagnostics& mistakes) {
  if (!node.is_map() || node.entries().empty()) {
    mistakes.push_back(
        mistake_at(node.place(), fmt::format("`{}`: expected a map of axes and values, found {}", where,
                                             node.is_map() ? "an empty one" : yaml::describe(node))));
    return std::nullopt;
  }
  MatrixPoint point;
  bool good = true;
  for (const Entry& entry : node.entries()) {
    if (std::find(axes.begin(), axes.end(), entry.key) == axes.end()) {
      mistakes.push_back(mistake_at(entry.place,
                                    fmt::format("`{}`: `{}` is no axis of this matrix", where, entry.key),
                                    yaml::suggest(entry.key, axes)));
      good = false;
    } else if (!entry.value.is_scalar()) {
      mistakes.push_back(
          mistake_at(entry.value.place(), fmt::format("`{}`: axis `{}`: expected one value, found {}", where,
                                                      entry.key, yaml::describe(entry.value))));
      good = false;
    } else if (const auto known = values.find(entry.key);
               !whole && std::none_of(known->second.begin(), known->second.end(),
                                      [&](const Node& value) { return same_value(value, entry.value); })) {
      std::vector<std::string> texts;
      for (const Node& value : known->second) texts.push_back(value.text());
      mistakes.push_back(
          mistake_at(entry.value.place(),
                     fmt::format("`{}`: axis `{}` has no value {}", where, entry.key, entry.value.text()),
                     yaml::suggest(entry.value.text(), texts)));
      good = false;
    } else {
      point[entry.key] = entry.value;
    }
  }
  for (const std::string& axis : axes) {
    if (!whole || node.find(axis) != nullptr) continue;
    mistakes.push_back(mistake_at(node.place(), fmt::format("`{}`: axis `{}` has no value here", where, axis),
                                  "a point names every axis"));
    good = false;
  }
  if (!good) return std::nullopt;
  return point;
}

std::vector<MatrixPoint> read_points(const Node* list, const std::string& where,
                                     const std::vector<std::string>& axes,
                                     const std::map<std::string, std::vector<Node>>& values,
                                     Diagnostics& mistakes) {
  std::vector<MatrixPoint> points;
  if (list == nullptr || list->is_null()) return points;
  if (!list->is_sequence()) {
    mistakes.push_back(mistake_at(
        list->place(), fmt::format("`{}`: expected a list, found {}", where, yaml::describe(*list))));
    return points;
  }
  for (const Node& item : list->items())
    if (auto point = read_point(item, where, axes, values, where == "include", mistakes))
      points.push_back(std::move(*point));
  return points;
}

}  // namespace

Matrix read_matrix(const Node& node, const std::string& stage, Diagnostics& mistakes) {
  const std::size_t mistakes_before = mistakes.size();
  Matrix matrix;
  if (node.is_null()) {
    matrix.points.emplace_back();
    return matrix;
  }
  if (!node.is_map()) {
    mistakes.push_back(
        mistake_at(node.place(), "`matrix`: expected a map of axes, found " + yaml::describe(node)));
    return matrix;
  }
  std::map<std::string, std::vector<Node>> values;
  std::size_t size = 1;
  for (const Entry& entry : node.entries()) {
    if (entry.key == "include" || entry.key == "exclude") continue;
    if (!is_identifier(entry.key))
      mistakes.push_back(mistake_at(entry.place, fmt::format("axis `{}` has no proper name", entry.key),
                                    "letters, digits, _ and -"));
    matrix.axes.push_back(entry.key);
    values[entry.key] = axis_values(entry, mistakes);
    size *= std::max<std::size_t>(1, values[entry.key].size());
    if (size > kMostPoints) {
      mistakes.push_back(mistake_at(
          node.place(), fmt::format("the matrix of stage `{}` has more than {} points", stage, kMostPoints)));
      return matrix;
    }
  }
  if (matrix.axes.empty()) {
    mistakes.push_back(mistake_at(node.place(), fmt::format("the matrix of stage `{}` has no axis", stage)));
    return matrix;
  }
  const auto excluded = read_points(node.find("exclude"), "exclude", matrix.axes, values, mistakes);
  const auto included = read_points(node.find("include"), "include", matrix.axes, values, mistakes);
  if (mistakes.size() > mistakes_before) return matrix;

  matrix.points.emplace_back();
  for (const std::string& axis : matrix.axes) {
    std::vector<MatrixPoint> longer;
    for (const MatrixPoint& point : matrix.points) {
      for (const Node& value : values[axis]) {
        longer.push_back(point);
        longer.back()[axis] = value;
      }
    }
    matrix.points = std::move(longer);
  }
  std::erase_if(matrix.points, [&](const MatrixPoint& point) {
    return std::any_of(excluded.begin(), excluded.end(),
                       [&](const MatrixPoint& part) { return agrees(point, part); });
  });
  for (const MatrixPoint& point : included)
    if (std::none_of(matrix.points.begin(), matrix.points.end(),
                     [&](const MatrixPoint& other) { return agrees(other, point); }))
      matrix.points.push_back(point);
  if (matrix.points.empty())
    mistakes.push_back(
        mistake_at(node.place(), fmt::format("`exclude` leaves nothing of the matrix of stage `{}`", stage)));
  return matrix;
}

std::string instance_name(const std::string& base, const Matrix& matrix, const MatrixPoint& point) {
  std::string name = base;
  for (const std::string& axis : matrix.axes) {
    name += '-';
    for (const char c : point.at(axis).text())
      name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ? c : '_';
  }
  return name;
}

}  // namespace warpsmith::workflow

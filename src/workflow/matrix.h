// `matrix:` of a stage: its axes and its points.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "warpsmith/yaml/node.h"

namespace warpsmith::workflow {

using MatrixPoint = std::map<std::string, yaml::Node>;  // axis -> value

struct Matrix {
  std::vector<std::string> axes;    // in the file's order
  std::vector<MatrixPoint> points;  // the last axis runs fastest; then those of `include`
};

inline constexpr std::size_t kMostPoints = 10'000;

// `node`: {axis: [values…], …, include: [point…], exclude: [part of a point…]}, references replaced. No
// matrix: one empty point. No points where there is a mistake.
Matrix read_matrix(const yaml::Node& node, const std::string& stage, Diagnostics& mistakes);

// "evaluate-sft-0.5": the base name, then the values in the order of the axes, what is not fit for a file
// name replaced by _.
std::string instance_name(const std::string& base, const Matrix& matrix, const MatrixPoint& point);

}  // namespace warpsmith::workflow

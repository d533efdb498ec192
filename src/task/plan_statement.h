// The parsed form of a launch plan, shared by its parser and its evaluation.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/task/launch_plan.h"

namespace warpsmith::task {

struct PlanArg {
  ArgKind kind = ArgKind::kI32;
  std::string name;  // kPointer, kTensorMap
  Expression value;  // the other kinds; of reals for kF64, kF32, kF16
};

struct PlanStatement {
  enum class Kind { kLet, kIf, kFor, kTemp, kFill, kCopy, kConst, kLaunch, kTensorMap };
  Kind kind = Kind::kLaunch;
  int line = 0;                   // in the source
  int column = 1;                 // kConst, kLaunch: of the name
  std::string name;               // what is defined or written; kLaunch: the kernel's name expression
  std::string source;             // kCopy, kConst, kTensorMap
  Dtype dtype = Dtype::kFloat32;  // kTemp
  std::vector<Expression>
      expressions;  // kLet, kIf, kFill: one; kFor: begin, end; kTemp: shape; kTensorMap: tile
  std::array<Expression, 3> grid, block, cluster;
  Expression smem;
  bool cooperative = false, pdl = false;
  int swizzle = 0;
  std::vector<PlanArg> args;
  std::vector<PlanStatement> body, otherwise;  // kIf, kFor
};

}  // namespace warpsmith::task

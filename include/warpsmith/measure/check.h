// Correct first: a candidate against the float64 oracle.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/program.h"

namespace warpsmith::measure {

// Behind the detail of one that fails at a hidden shape alone.
inline constexpr const char* kRightAtTimingShapes = "; right at the timing shapes";

struct CheckOutcome {
  Verdict verdict = Verdict::kOk;
  std::string detail;
  bool only_hidden = false;               // it fails at a hidden shape, and is right at the timing shapes
  bool died_at_hidden = false;            // it failed at a hidden shape, and its process is gone with that
  double max_error = 0, error_bound = 0;  // of the case that came nearest to its bound, or broke it
  double calls_s = 0;  // that its calls took, laying out their operands included; the rest is the oracle's
  int decided = 0;     // cases that could be decided; 0 with verdict ok: the task is at fault
};

// Those at timing shapes.
std::vector<CheckCase> cases_at_timing_shapes(const std::vector<CheckCase>& cases);

// Runs every case and stops at the first failure. In each, outputs and temporaries are poisoned; at the first
// seed of a shape two calls on equal inputs run, and where one is right and the other wrong the verdict is
// nondeterministic. Writing to an input ends as input_modified.
CheckOutcome check_candidate(Program& program, const task::Task& task, Oracle& oracle,
                             const std::vector<CheckCase>& cases);

}  // namespace warpsmith::measure

// From the times of a pair to a score, and from a score to a verdict: the same on every device.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/measure/measurer.h"
#include "warpsmith/measure/pairs.h"

namespace warpsmith::measure {

// One timing of a pair and what is thought of it.
struct Timing {
  PairResult pairs;
  stats::Score score;  // where the pairs' verdict is ok
  int calls = 1;
  bool baseline_agrees = true;
  double pair_ns = 0, alone_ns = 0;  // the baseline's
};

double seconds_now();  // on the steady clock
double ratio_apart(double a, double b);  // of the larger to the smaller
std::vector<double> to_doubles(const std::vector<std::int64_t>& values);

// A measurement that says nothing yet: no verdict, no device.
Measurement blank_measurement(const Settings& settings, const task::Task& task, const std::string& candidate);
// `attempt`: values and order differ from one to the next.
PairSettings pair_settings(const Settings& settings, const std::string& task, const std::string& candidate, int attempt);

Timing judge(const Settings& settings, PairResult pairs, int calls);
void write_score(const Settings& settings, const Timing& timing, Measured& out);
// Whether the score may be used at all; else the verdict is set.
bool stable(const Settings& settings, const Timing& timing, Measurement& m);
bool looks_too_good(const Settings& settings, const Measurement& m);
// A score against its re-measurement: over 10 % apart is `unstable`.
void compare_scores(double before, double after, Measurement& m);

}  // namespace warpsmith::measure

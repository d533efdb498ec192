// Paired rounds: when to take them and when to stop. Knows neither torch nor children: arms and clock are
// handed in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "warpsmith/measure/arm.h"
#include "warpsmith/stats/score.h"

namespace warpsmith::measure {

struct PairSettings {
  stats::Protocol protocol;
  double budget_s = 2;
  int calls = 1;  // K: calls in each timed interval, each on operands of its own
  int inspections =
      4;  // timed calls that are checked, on average, in the first look's rounds; then at the same rate
  std::uint64_t key = 0;        // of values, order and choice
  std::function<double()> now;  // seconds on a steady clock
};

struct PairResult {
  Verdict verdict =
      Verdict::kOk;  // else that of the run or the inspection that failed; `timeout`: too slow to be timed
  std::string detail;
  std::vector<std::int64_t> baseline_ns, candidate_ns;  // a call, by round; a multiple of the buckets
  std::vector<int> baseline_places, candidate_places;   // Arm::place(), by round
  bool budget_ended = false;
  bool gave_up = false;  // so slow that its score need not be known as well as others (stats::slow_enough)
};

// Warms both arms up, then takes rounds in random order until the interval is narrow enough or the budget
// ends. Where the budget ends before every bucket has a round, it goes on to that, for at most three budgets
// in all.
PairResult time_pairs(Arm& baseline, Arm& candidate, const PairSettings& settings);

// `rounds` intervals of one arm alone, after one to warm up: nanoseconds a call.
std::vector<double> time_alone(Arm& arm, int calls, int rounds, std::uint64_t key);

// `rounds` intervals of `arm`, in turn before and after an interval of `other` that is not counted:
// nanoseconds a call.
std::vector<double> time_beside(Arm& arm, Arm& other, int calls, int rounds, std::uint64_t key);

}  // namespace warpsmith::measure

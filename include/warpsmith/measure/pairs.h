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
  int calls = 1;            // K: calls in each timed interval, each on operands of its own
  int candidate_calls = 0;  // in the candidate's, where its are others; 0: as many
  // Timed calls that are compared in full: so many in the rounds of the first look, then at the same rate
  // over `fewer_later`; at least one.
  int inspections = 4;
  int fewer_later = 1;
  std::uint64_t key = 0;        // of values, order and choice
  std::function<double()> now;  // seconds on a steady clock
  // Whether the device is, at this moment, in a state in which times mean nothing (a GPU that heat slows
  // down). Asked before the first round, after the last, and at most every `look_every_s` between them,
  // always between rounds. The rounds between two looks are kept only where neither saw such a state; else
  // they are thrown away, and others taken. Empty: never.
  std::function<bool()> disturbed;
  double look_every_s = 0.02;
};

struct PairResult {
  Verdict verdict =
      Verdict::kOk;  // else that of the run or the inspection that failed; `timeout`: too slow to be timed;
                     // `not_measured`: for all of the time the device was disturbed
  std::string detail;
  std::vector<std::int64_t> baseline_ns, candidate_ns;  // a call, by round; a multiple of the buckets
  std::vector<int> baseline_places, candidate_places;   // Arm::place(), by round
  bool budget_ended = false;
  bool gave_up = false;  // so slow that its score need not be known as well as others (stats::slow_enough)
  int rounds_thrown_away = 0;  // by PairSettings::disturbed
};

// Warms both arms up, then takes rounds in random order until the interval is narrow enough or the budget
// ends. Where the budget ends before every bucket has a round, it goes on to that, for at most three budgets
// in all.
PairResult time_pairs(Arm& baseline, Arm& candidate, const PairSettings& settings);

// `rounds` intervals of one arm alone, after one to warm up: nanoseconds a call.
std::vector<double> time_alone(Arm& arm, int calls, int rounds, std::uint64_t key);

// Calls in each interval of an arm and of the other.
struct RowCalls {
  int own = 1, others = 1;
};

// `rounds` intervals of `arm`, in turn before and after an interval of `other` that is not counted:
// nanoseconds a call. It ends where `other` fails; how goes to `failed`, which stays ok where it does not.
// What the other's intervals took goes to `others`, where it is asked for.
std::vector<double> time_beside(Arm& arm, Arm& other, RowCalls calls, int rounds, std::uint64_t key,
                                Arm::Run* failed = nullptr, std::vector<double>* others = nullptr);

// What an arm takes alone and beside another, in turns of `rounds` intervals each: a machine that grows
// slower or faster within seconds does so for both. Medians by turn, nanoseconds a call.
struct Turns {
  std::vector<double> alone_ns, beside_ns, others_ns;
  Arm::Run failed;  // of `other`; ok where it did not
};
Turns time_in_turns(Arm& arm, Arm& other, RowCalls calls, int turns, int rounds, std::uint64_t key);

}  // namespace warpsmith::measure

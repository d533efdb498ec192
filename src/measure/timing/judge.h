// From the times of a pair to a score, and from a score to a verdict: the same on every device.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/measure/check.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/measure/pairs.h"
#include "warpsmith/task/launch_plan.h"

namespace warpsmith::measure {

// One timing of a pair and what is thought of it.
struct Timing {
  PairResult pairs;
  stats::Score score;  // where the pairs' verdict is ok
  int calls = 1;
  bool baseline_agrees = true;
  double pair_ns = 0, alone_ns = 0;  // the baseline's
  double alone_error = 0;            // standard error of the second, as a share of it
  // As Measurement has them: `candidate_event_ns`, `own_share`, `clock` and, where the verdict is hack,
  // `hack`.
  std::optional<double> event_ns;
  std::optional<double> own_share;
  std::map<std::string, std::string> clock_facts;
  std::string hack;
  bool beside_clock = false;  // such a hack as a machine that is busy for a moment looks like
  std::string clocks;         // how CUDA's events and the host's clock disagree; empty: they do not
};

double seconds_now();                    // on the steady clock
double ratio_apart(double a, double b);  // of the larger to the smaller
std::vector<double> to_doubles(const std::vector<std::int64_t>& values);

// A measurement that says nothing yet: no verdict, no device.
Measurement blank_measurement(const Settings& settings, const task::Task& task, const std::string& candidate);
// `attempt`: values and order differ from one to the next.
PairSettings pair_settings(const Settings& settings, const std::string& task, const std::string& candidate,
                           int attempt);

// Takes the candidate's plan out of its source. Nothing: compile_error is the verdict now.
std::optional<task::LaunchPlan> plan_of(const Candidate& candidate, const task::Task& task, Measurement& m);
// Verdict, errors and bounds of the checks; true where the candidate is right. Throws Error where no check of
// the task can be decided.
bool write_checks(const CheckOutcome& outcome, const task::Task& task, Oracle& oracle,
                  const std::vector<CheckCase>& cases, Measurement& m);

Timing judge(const Settings& settings, PairResult pairs, int calls);
// The same with `ns` nanoseconds more for each call of the candidate; not with less.
void charge(const Settings& settings, double ns, Timing& timing);
void write_score(const Settings& settings, const Timing& timing, Measured& out);
// The baseline in the pair against alone: not over `most` times apart, beyond what the scatter of the rounds
// explains (on a noisy machine two medians of equal things differ).
bool baseline_agrees(const Timing& timing, double most);
// Whether a baseline that is slower in the pair than alone does not matter: it flatters the candidate, which
// is slower than it all the same. (By a host's clock: behind some 10 ms of another process it finds the
// processor cold, and is up to a tenth slower; what is more than 15 % is something else.)
bool slow_all_the_same(const Timing& timing);
// baseline_agrees() from turns: the median of their ratios. The score must be one that the turns give as
// well, to within kTurnsApart: it may not be another time's.
inline constexpr double kTurnsApart = 1.05;
bool turns_agree(const Turns& turns, double speedup, double most);
// A Timing of a run that failed.
Timing failed_timing(const Ran& run);
// The verdict, kind and detail of a timing that failed; false where it did not.
bool write_failure(const Timing& timing, Measurement& m);
void write_clock(const Timing& timing, Measurement& m);
// As if it had not been timed, but for its clock's facts.
void drop_score(Measured& out);
// Whether the buckets agree, as far as the gate wants it.
bool steady(const Settings& settings, const Timing& timing);
// Whether the score may be used at all; else the verdict is set.
bool stable(const Settings& settings, const Timing& timing, Measurement& m);
bool looks_too_good(const Settings& settings, const Measurement& m);
// The detail of one whose baseline does not agree with its time alone, and of a too_fast one.
std::string baseline_words(const Timing& timing);
// `must`: what a candidate must do with the bytes, "read from memory".
std::string too_fast_words(double candidate_ns, double floor_ns, const std::string& must);
// CUDA's events against the host's clock over the same calls from an idle GPU; what is wrong where they are
// over 10 % and 50 us apart (the host's holds two records and a wake-up as well), else empty.
std::string clocks_disagree(double events_ns, double host_ns);
// A score against its re-measurement: over 10 % apart is `unstable`.
void compare_scores(double before, double after, Measurement& m);
// Seconds that another part of the same measurement has taken.
void add_costs(Measurement& m, const Measurement& other);

// What a measurement and its repetition in another process come to; `first.again` is set. A baseline that
// was slower beside the candidate than alone both times is a `hack`, kind slowed_baseline; of two scores the
// lower one counts. `again` of the result: whether it takes a third (the second may look too good, or its
// baseline may have been disturbed).
Measured second_opinion(const Measured& first, Measured second);

}  // namespace warpsmith::measure

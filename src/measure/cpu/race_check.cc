#include "race_check.h"

#include <algorithm>

#include "warpsmith/measure/arm.h"

namespace warpsmith::measure {

namespace {

// Each is run twice (check.h): a hidden shape takes all orders, a timing shape, which is mostly larger, the
// first two.
std::vector<CheckCase> cases_for_races(const std::vector<CheckCase>& cases) {
  std::vector<CheckCase> chosen;
  for (const bool hidden : {true, false})
    for (CheckCase c : cases) {
      if (c.hidden != hidden || c.seed != 0 || c.distribution >= 0) continue;
      c.hidden = false;  // whether it is right at the timing shapes is not asked
      chosen.insert(chosen.end(), hidden ? device::kMixedOrders / 2 : 1, c);
    }
  return chosen;
}

bool is_race(const CheckOutcome& outcome) {
  switch (outcome.verdict) {
    case Verdict::kWrongOutput:
    case Verdict::kNondeterministic:
    case Verdict::kOutOfBounds:
    case Verdict::kInputModified:
      return true;
    case Verdict::kCrash:
      // Fibers have smaller stacks than the threads of the other runs.
      return outcome.detail.find("stack overflow") == std::string::npos;
    default:
      return false;
  }
}

}  // namespace

CheckOutcome check_for_races(const task::Task& task, const task::LaunchPlan& plan,
                             device::TwinOptions options, Oracle& oracle, const std::vector<CheckCase>& cases,
                             CheckOutcome found) {
  options.mixed = true;
  CandidateProcess process(task, plan, options);
  const CheckOutcome outcome = check_candidate(process, task, oracle, cases_for_races(cases));
  if (outcome.verdict == Verdict::kOk) return found;
  if (!is_race(outcome)) {
    found.detail = "not all checks for data races were made: " + outcome.detail;
    return found;
  }
  found.verdict = Verdict::kNondeterministic;
  found.detail =
      "a data race: right where threads run in ascending order, and not in another: " + outcome.detail;
  return found;
}

}  // namespace warpsmith::measure

#include "warpsmith/measure/check.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "timing/judge.h"
#include "warpsmith/measure/compare.h"

namespace warpsmith::measure {

namespace {

class Checker {
 public:
  Checker(Program& program, const task::Task& task, Oracle& oracle)
      : program_(program), task_(task), oracle_(oracle) {}

  // One case. False where the candidate fails it; outcome() says how.
  bool check(const CheckCase& check) {
    const Asked asked = oracle_.asked(check);
    if (!asked.decidable) return true;
    const int sets = check.seed == 0 && check.distribution < 0 ? 2 : 1;
    double begin = seconds_now();
    if (!prepared_ || program_.dims() != check.dims || prepared_sets_ < sets) {
      const Ran prepared = program_.prepare(check.dims, sets);
      if (prepared.verdict != Verdict::kOk) return fail(prepared.verdict, prepared.detail, check);
      prepared_ = true;
      prepared_sets_ = sets;
    }
    outcome_.calls_s += seconds_now() - begin;
    program_.poison(sets);
    InputSets inputs;
    for (int set = 0; set < sets; ++set) inputs.push_back(program_.inputs(set));
    for (const auto& set : inputs) oracle_.fill(check, set);
    begin = seconds_now();
    const Ran run = program_.run(sets);
    outcome_.calls_s += seconds_now() - begin;
    if (run.verdict != Verdict::kOk) return fail(run.verdict, run.detail, check);
    if (const std::optional<std::size_t> changed = oracle_.changed_input(check, inputs))
      return fail(Verdict::kInputModified, "writes to input `" + task_.inputs[*changed].name + "`", check);
    ++outcome_.decided;
    OutputSets outputs;
    for (int set = 0; set < sets; ++set) outputs.push_back(program_.outputs(set));
    std::vector<Compared> compared = oracle_.compare(check, outputs);
    if (!all_right(compared) && oracle_.widen(check)) compared = oracle_.compare(check, outputs);
    return judge(check, compared, oracle_.asked(check).bounds);
  }

  CheckOutcome& outcome() { return outcome_; }

 private:
  static bool all_right(const std::vector<Compared>& outputs) {
    return std::all_of(outputs.begin(), outputs.end(), [](const Compared& output) {
      return output.agree && std::all_of(output.with_right.begin(), output.with_right.end(),
                                         [](const Comparison& set) { return set.agrees; });
    });
  }

  bool fail(Verdict verdict, const std::string& detail, const CheckCase& check) {
    outcome_.verdict = verdict;
    outcome_.detail =
        (detail.empty() ? std::string(to_string(verdict)) : detail) + ", " + describe(check, task_);
    return false;
  }

  void note_error(double error, double bound) {
    if (bound <= 0) return;
    if (outcome_.error_bound > 0 && error / bound <= outcome_.max_error / outcome_.error_bound) return;
    outcome_.max_error = error;
    outcome_.error_bound = bound;
  }

  bool judge(const CheckCase& check, const std::vector<Compared>& outputs,
             const std::vector<double>& bounds) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Comparison &first = outputs[i].with_right.front(), &second = outputs[i].with_right.back();
      const task::TensorSpec& output = task_.outputs[i];
      const auto text = [&](const Comparison& wrong) {
        return describe(wrong, output.name, output.dtype, task::shape_at(output, check.dims));
      };
      note_error(first.max_error, bounds[i]);
      if (first.agrees != second.agrees)
        return fail(
            Verdict::kNondeterministic,
            "two calls on equal inputs differ: " + text(first.agrees ? second : first) + " in one of them",
            check);
      if (!first.agrees) {
        // Both are wrong. Where they also differ from each other, chance is at work and not arithmetic.
        if (outputs[i].agree) return fail(Verdict::kWrongOutput, text(first), check);
        return fail(Verdict::kNondeterministic,
                    "two calls on equal inputs differ, and are wrong: " + text(first), check);
      }
      if (!outputs[i].agree)
        return fail(Verdict::kNondeterministic,
                    "two calls on equal inputs differ by more than the bound in " + output.name, check);
    }
    return true;
  }

  Program& program_;
  const task::Task& task_;
  Oracle& oracle_;
  bool prepared_ = false;
  int prepared_sets_ = 0;
  CheckOutcome outcome_;
};

}  // namespace

std::vector<CheckCase> cases_at_timing_shapes(const std::vector<CheckCase>& cases) {
  std::vector<CheckCase> own;
  std::copy_if(cases.begin(), cases.end(), std::back_inserter(own),
               [](const CheckCase& check) { return !check.hidden; });
  return own;
}

CheckOutcome check_candidate(Program& program, const task::Task& task, Oracle& oracle,
                             const std::vector<CheckCase>& cases) {
  Checker checker(program, task, oracle);
  for (const CheckCase& check : cases) {
    if (checker.check(check)) continue;
    CheckOutcome outcome = checker.outcome();
    outcome.died_at_hidden =
        check.hidden && !program.alive() && outcome.verdict != Verdict::kSandboxViolation;
    // Wrong at a hidden shape: whether it is right where it would be timed tells a careless kernel from a
    // wrong one.
    const bool wrong = outcome.verdict == Verdict::kWrongOutput || outcome.verdict == Verdict::kLaunchError;
    if (!wrong || !check.hidden || !program.alive()) return outcome;
    Checker timing(program, task, oracle);
    const std::vector<CheckCase> own = cases_at_timing_shapes(cases);
    const bool right_at_timing =
        std::all_of(own.begin(), own.end(), [&](const CheckCase& other) { return timing.check(other); }) &&
        timing.outcome().decided > 0;
    if (right_at_timing) {
      outcome.only_hidden = true;
      outcome.detail += kRightAtTimingShapes;
      return outcome;
    }
    if (timing.outcome().verdict == Verdict::kWrongOutput)
      outcome.detail += "; wrong at the timing shapes, too";
    return outcome;
  }
  return checker.outcome();
}

}  // namespace warpsmith::measure

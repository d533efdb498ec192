#include "warpsmith/measure/check.h"

#include <algorithm>
#include <cstring>

#include "warpsmith/measure/compare.h"

namespace warpsmith::measure {

namespace {

class Checker {
 public:
  Checker(Program& program, const task::Task& task, Oracle& oracle)
      : program_(program), task_(task), oracle_(oracle) {}

  // One case. False where the candidate fails it; outcome() says how.
  bool check(const CheckCase& check) {
    const std::shared_ptr<const Expected> expected = oracle_.expected(check);
    if (!expected->decidable) return true;
    const int sets = check.seed == 0 && check.distribution < 0 ? 2 : 1;
    if (!prepared_ || program_.dims() != check.dims || prepared_sets_ < sets) {
      const Ran prepared = program_.prepare(check.dims, sets);
      if (prepared.verdict != Verdict::kOk) return fail(prepared.verdict, prepared.detail, check);
      prepared_ = true;
      prepared_sets_ = sets;
    }
    program_.poison(sets);
    for (int set = 0; set < sets; ++set) oracle_.fill(check, program_.inputs(set));
    const Ran run = program_.run(sets);
    if (run.verdict != Verdict::kOk) return fail(run.verdict, run.detail, check);
    ++outcome_.decided;
    return compare_outputs(check, *expected, sets);
  }

  CheckOutcome& outcome() { return outcome_; }

 private:
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

  bool compare_outputs(const CheckCase& check, const Expected& expected, int sets) {
    for (std::size_t i = 0; i < expected.outputs.size(); ++i) {
      const OutputValues& right = expected.outputs[i];
      const double bound = expected.bounds[i];
      const std::string& name = task_.outputs[i].name;
      const Comparison first = compare(program_.output(0, i), right, bound);
      note_error(first.max_error, bound);
      const Comparison second = sets > 1 ? compare(program_.output(1, i), right, bound) : first;
      if (first.agrees != second.agrees) {
        const Comparison& wrong = first.agrees ? second : first;
        return fail(Verdict::kNondeterministic,
                    "two calls on equal inputs differ: " + describe(wrong, name, right) + " in one of them",
                    check);
      }
      if (!first.agrees) {
        // Both are wrong. Where they also differ from each other, chance is at work and not arithmetic.
        if (sets > 1 && !same_bytes(i)) return differing(check, expected, i, first);
        return fail(Verdict::kWrongOutput, describe(first, name, right), check);
      }
      if (sets > 1 && !agree_with_each_other(right, bound, i))
        return fail(Verdict::kNondeterministic,
                    "two calls on equal inputs differ by more than the bound in " + name, check);
    }
    return true;
  }

  bool same_bytes(std::size_t output) {
    const auto a = program_.output(0, output), b = program_.output(1, output);
    return std::memcmp(a.data(), b.data(), a.size()) == 0;
  }

  bool agree_with_each_other(const OutputValues& right, double bound, std::size_t output) {
    if (same_bytes(output)) return true;
    const OutputValues other = decode(program_.output(0, output), right.dtype, right.shape);
    return compare(program_.output(1, output), other, bound).agrees;
  }

  bool differing(const CheckCase& check, const Expected& expected, std::size_t i, const Comparison& wrong) {
    const OutputValues& right = expected.outputs[i];
    const std::string text = describe(wrong, task_.outputs[i].name, right);
    if (agree_with_each_other(right, expected.bounds[i], i)) return fail(Verdict::kWrongOutput, text, check);
    return fail(Verdict::kNondeterministic, "two calls on equal inputs differ, and are wrong: " + text,
                check);
  }

  Program& program_;
  const task::Task& task_;
  Oracle& oracle_;
  bool prepared_ = false;
  int prepared_sets_ = 0;
  CheckOutcome outcome_;
};

}  // namespace

CheckOutcome check_candidate(Program& program, const task::Task& task, Oracle& oracle,
                             const std::vector<CheckCase>& cases) {
  Checker checker(program, task, oracle);
  for (const CheckCase& check : cases) {
    if (checker.check(check)) continue;
    CheckOutcome outcome = checker.outcome();
    // Wrong at a hidden shape: whether it is right where it would be timed tells a careless kernel from a
    // wrong one.
    const bool wrong = outcome.verdict == Verdict::kWrongOutput && check.hidden && program.alive();
    if (!wrong) return outcome;
    Checker timing(program, task, oracle);
    const bool right_at_timing = std::all_of(cases.begin(), cases.end(), [&](const CheckCase& other) {
      return other.hidden || timing.check(other);
    });
    if (right_at_timing) {
      outcome.only_hidden = true;
      outcome.detail += "; right at the timing shapes";
      return outcome;
    }
    if (timing.outcome().verdict == Verdict::kWrongOutput)
      outcome.detail += "; wrong at the timing shapes, too";
    return outcome;
  }
  return checker.outcome();
}

}  // namespace warpsmith::measure

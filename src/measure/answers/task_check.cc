#include "warpsmith/measure/task_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "warpsmith/base/random.h"
#include "warpsmith/measure/compare.h"
#include "warpsmith/measure/oracle.h"

namespace warpsmith::measure {

namespace {

// The constants that agree with every element seen so far.
struct Constants {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();

  bool some() const { return low <= high; }
  void meet(const Constants& other) {
    low = std::max(low, other.low);
    high = std::min(high, other.high);
  }
  // One that is easy to read.
  double any() const {
    if (low <= 0 && 0 <= high) return 0;
    if (!std::isfinite(low)) return high;
    if (!std::isfinite(high)) return low;
    return std::ceil(low) <= high ? std::ceil(low) : (low + high) / 2;
  }
};

constexpr Constants kNone{1, 0};

Constants constants_of(const OutputValues& right, double bound) {
  Constants all;
  for (const double value : right.reals) {
    if (!std::isfinite(value)) return kNone;  // a NaN or an infinity wants just that one
    all.meet({value - bound, value + bound});
  }
  for (const std::int64_t value : right.integers)
    all.meet({static_cast<double>(value), static_cast<double>(value)});
  return all;
}

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

using Memory = std::vector<std::vector<std::byte>>;

std::vector<std::span<std::byte>> spans_of(Memory& memory) { return {memory.begin(), memory.end()}; }

std::vector<std::span<const std::byte>> read_only(const Memory& memory) {
  return {memory.begin(), memory.end()};
}

class TaskChecker {
 public:
  TaskChecker(const task::Task& task, Place place, int seeds, std::uint64_t seed)
      : task_(task),
        reference_(task, place),
        oracle_(task, reference_, source_, seed, 0),
        cases_(check_cases(task, seeds)),
        seed_(seed) {
    // What a large shape could show of a distribution or another seed the smaller ones show as well.
    std::erase_if(cases_, [&](const CheckCase& check) {
      return is_large(task_, check.dims) && (check.seed > 0 || check.distribution >= 0);
    });
  }

  TaskFindings run() {
    findings_.task = task_.id;
    answers_.resize(task_.outputs.size());
    for (Answers& a : answers_) a.as_input.assign(task_.inputs.size(), true);
    needed_.assign(task_.inputs.size(), false);
    for (const CheckCase& check : cases_) {
      ++findings_.cases;
      const auto expected = oracle_.expected(check);
      if (!expected->decidable) {
        findings_.undecidable.push_back(describe(check, task_) + ": " + expected->undecidable_because);
        continue;
      }
      look_at(check, *expected);
      look_at_inputs(check, *expected);
    }
    conclude();
    return std::move(findings_);
  }

 private:
  struct Answers {  // that are still possible for an output
    Constants constant;
    std::map<task::Dims, Constants> by_shape;
    std::vector<bool> as_input;
  };

  Memory inputs_of(const CheckCase& check) const {
    Memory memory;
    for (const task::TensorSpec& input : task_.inputs) memory.emplace_back(tensor_bytes(input, check.dims));
    oracle_.fill(check, spans_of(memory));
    return memory;
  }

  void look_at(const CheckCase& check, const Expected& expected) {
    const Memory inputs = inputs_of(check);
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      const OutputValues& right = expected.outputs[i];
      const Constants constants = constants_of(right, expected.bounds[i]);
      answers_[i].constant.meet(constants);
      answers_[i].by_shape[check.dims].meet(constants);
      for (std::size_t j = 0; j < inputs.size(); ++j) {
        if (!answers_[i].as_input[j]) continue;
        const task::TensorSpec& input = task_.inputs[j];
        const std::vector<std::int64_t> shape = task::shape_at(input, check.dims);
        answers_[i].as_input[j] = input.strides.empty() && elements(shape) == elements(right.shape) &&
                                  input.dtype == right.dtype &&
                                  compare(inputs[j], right, expected.bounds[i]).agrees;
      }
    }
  }

  // One input after the other with other values, all else the same.
  void look_at_inputs(const CheckCase& check, const Expected& expected) {
    for (std::size_t j = 0; j < task_.inputs.size(); ++j) {
      if (needed_[j]) continue;
      Memory inputs = inputs_of(check);
      Memory others = inputs;
      fill_inputs(source_, reference_, check.dims, check.distribution, seed_,
                  random_key({name_key("others")}), spans_of(others));
      if (others[j] == inputs[j]) continue;  // its values are always the same
      inputs[j] = std::move(others[j]);
      varied_.insert(j);
      const std::vector<OutputValues> outputs = reference_.run_oracle(check.dims, read_only(inputs));
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (!compare(outputs[i], expected.outputs[i], expected.bounds[i]).agrees) needed_[j] = true;
    }
  }

  std::optional<std::string> cheap_answer(const Answers& answers) const {
    if (answers.constant.some()) {
      const double value = answers.constant.any();
      return value == 0 ? "zeros" : fmt::format("one constant, {:.6g}", value);
    }
    for (std::size_t j = 0; j < task_.inputs.size(); ++j)
      if (answers.as_input[j]) return "input `" + task_.inputs[j].name + "` as it is";
    if (std::all_of(answers.by_shape.begin(), answers.by_shape.end(),
                    [](const auto& entry) { return entry.second.some(); }))
      return "a constant for each shape";
    return std::nullopt;
  }

  void conclude() {
    if (findings_.undecidable.size() == static_cast<std::size_t>(findings_.cases)) {
      findings_.degenerate = true;
      return;
    }
    for (std::size_t i = 0; i < answers_.size(); ++i)
      if (const auto answer = cheap_answer(answers_[i]))
        findings_.cheap.push_back("`" + task_.outputs[i].name + "`: " + *answer);
    for (const std::size_t j : varied_)
      if (!needed_[j]) findings_.unread.push_back(task_.inputs[j].name);
    findings_.degenerate = findings_.cheap.size() == answers_.size() || !findings_.unread.empty();
  }

  const task::Task& task_;
  ValueSource source_;
  Reference reference_;
  Oracle oracle_;
  std::vector<CheckCase> cases_;
  std::uint64_t seed_;
  TaskFindings findings_;
  std::vector<Answers> answers_;
  std::vector<bool> needed_;
  std::set<std::size_t> varied_;
};

}  // namespace

std::string TaskFindings::why() const {
  if (!degenerate) return "";
  if (static_cast<std::size_t>(cases) == undecidable.size())
    return "no check can be decided: " + undecidable.front();
  std::string text;
  if (!unread.empty()) {
    for (const std::string& name : unread) text += (text.empty() ? "`" : ", `") + name + "`";
    return "the answer does not depend on input " + text;
  }
  for (const std::string& answer : cheap) text += (text.empty() ? "" : "; ") + answer;
  return "it passes every check without computing anything: " + text;
}

Json to_json(const TaskFindings& findings) {
  return {{"task", findings.task},   {"cases", findings.cases},   {"undecidable", findings.undecidable},
          {"cheap", findings.cheap}, {"unread", findings.unread}, {"degenerate", findings.degenerate},
          {"why", findings.why()}};
}

TaskFindings check_task(const task::Task& task, Place place, int seeds, std::uint64_t seed) {
  return TaskChecker(task, place, seeds, seed).run();
}

}  // namespace warpsmith::measure

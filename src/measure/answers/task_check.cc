#include "warpsmith/measure/task_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

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

Constants constants_of(const AnswerFacts& facts) {
  if (std::isnan(facts.least)) return {1, 0};  // a NaN or an infinity wants just that one
  return {facts.most - facts.bound, facts.least + facts.bound};
}

// Share of the inputs' bytes: what need not be read beyond that makes a speedup.
constexpr double kMuchUnread = 0.05;

class TaskChecker {
 public:
  TaskChecker(const task::Task& task, Oracle& oracle, std::vector<CheckCase> cases)
      : task_(task), oracle_(oracle), cases_(std::move(cases)) {
    std::erase_if(cases_, [&](const CheckCase& check) {
      return is_large(task_, check.dims) && (check.seed > 0 || check.distribution >= 0);
    });
  }

  TaskFindings run() {
    findings_.task = task_.id;
    answers_.resize(task_.outputs.size());
    for (Answers& a : answers_)
      a.anywhere.is_input = a.timed.is_input = std::vector(task_.inputs.size(), true);
    needed_.assign(task_.inputs.size(), false);
    for (const CheckCase& check : cases_) {
      ++findings_.cases;
      const Asked asked = oracle_.asked(check);
      if (!asked.decidable) {
        findings_.undecidable.push_back(describe(check, task_) + ": " + asked.undecidable_because);
        continue;
      }
      look_at(check);
      look_at_inputs(check);
    }
    conclude();
    return std::move(findings_);
  }

 private:
  struct Possible {
    Constants constant;
    std::vector<bool> is_input;

    void meet(const Constants& constants, const AnswerFacts& facts) {
      constant.meet(constants);
      for (std::size_t j = 0; j < is_input.size(); ++j) is_input[j] = is_input[j] && facts.is_input[j];
    }
  };
  struct Answers {  // that are still possible for an output
    Possible anywhere, timed;
    bool is_timed = false;  // some timed shape was asked
    std::map<task::Dims, Constants> by_shape;
  };

  void look_at(const CheckCase& check) {
    const std::vector<AnswerFacts> facts = oracle_.facts(check);
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      const Constants constants = constants_of(facts[i]);
      Answers& answers = answers_[i];
      answers.anywhere.meet(constants, facts[i]);
      answers.by_shape[check.dims].meet(constants);
      if (check.hidden || check.distribution >= 0) continue;
      answers.is_timed = true;
      answers.timed.meet(constants, facts[i]);
    }
  }

  void look_at_inputs(const CheckCase& check) {
    for (std::size_t j = 0; j < task_.inputs.size(); ++j) {
      if (needed_[j]) continue;
      const std::optional<bool> needed = oracle_.needs(check, j);
      if (!needed) continue;
      varied_.insert(j);
      needed_[j] = *needed;
    }
  }

  std::optional<std::string> cheap_answer(const Possible& possible) const {
    if (possible.constant.some()) {
      const double value = possible.constant.any();
      return value == 0 ? "zeros" : fmt::format("one constant, {:.6g}", value);
    }
    for (std::size_t j = 0; j < task_.inputs.size(); ++j)
      if (possible.is_input[j]) return "input `" + task_.inputs[j].name + "` as it is";
    return std::nullopt;
  }

  std::optional<std::string> cheap_answer(const Answers& answers) const {
    if (auto answer = cheap_answer(answers.anywhere)) return answer;
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
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      const std::string output = "`" + task_.outputs[i].name + "`: ";
      if (const auto answer = cheap_answer(answers_[i])) {
        findings_.cheap.push_back(output + *answer);
      } else if (const auto when_timed = cheap_answer(answers_[i].timed);
                 answers_[i].is_timed && when_timed) {
        findings_.cheap_when_timed.push_back(output + *when_timed);
      }
    }
    for (const std::size_t j : varied_)
      if (!needed_[j]) findings_.unread.push_back(task_.inputs[j].name);
    findings_.unread_share = unread_share();
    findings_.much_unread = findings_.unread_share > kMuchUnread || no_data_is_read();
    findings_.degenerate = findings_.cheap.size() == answers_.size() || findings_.much_unread;
  }

  double unread_share() const {
    const CheckCase& largest = cases_.back();
    std::uint64_t unread = 0;
    for (const std::size_t j : varied_)
      if (!needed_[j]) unread += tensor_bytes(task_.inputs[j], largest.dims);
    return static_cast<double>(unread) /
           static_cast<double>(std::max<std::uint64_t>(1, input_bytes(task_, largest.dims)));
  }

  // Of those that are no parameters of a module.
  bool no_data_is_read() const {
    bool some = false;
    for (const std::size_t j : varied_) {
      if (!task_.inputs[j].state_dict.empty()) continue;
      if (needed_[j]) return false;
      some = true;
    }
    return some;
  }

  const task::Task& task_;
  Oracle& oracle_;
  std::vector<CheckCase> cases_;
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
  if (much_unread)
    return "the answer does not depend on input " + unread_names() +
           (unread_share > kMuchUnread && unread_share < 0.995
                ? fmt::format(" ({:.0f} % of the inputs' bytes)", 100 * unread_share)
                : "");
  for (const std::string& answer : cheap) text += (text.empty() ? "" : "; ") + answer;
  return "it passes every check without computing anything: " + text;
}

std::string TaskFindings::unread_names() const {
  constexpr std::size_t kMost = 2;
  std::string text;
  for (std::size_t i = 0; i < unread.size() && i < kMost; ++i)
    text += (text.empty() ? "`" : ", `") + unread[i] + "`";
  if (unread.size() > kMost) text += fmt::format(" and {} more", unread.size() - kMost);
  return text;
}

Json to_json(const TaskFindings& findings) {
  return {{"task", findings.task},
          {"cases", findings.cases},
          {"eager_ns", findings.eager_ns},
          {"undecidable", findings.undecidable},
          {"cheap", findings.cheap},
          {"unread", findings.unread},
          {"unread_names", findings.unread_names()},
          {"unread_share", findings.unread_share},
          {"degenerate", findings.degenerate},
          {"cheap_when_timed", findings.cheap_when_timed},
          {"why", findings.why()}};
}

TaskFindings check_task(const task::Task& task, Oracle& oracle, std::vector<CheckCase> cases) {
  return TaskChecker(task, oracle, std::move(cases)).run();
}

TaskFindings check_task(const task::Task& task, int seeds, std::uint64_t seed) {
  const ValueSource source;
  const Reference reference(task);
  Oracle oracle(task, reference, source, seed);
  return check_task(task, oracle, check_cases(task, seeds));
}

}  // namespace warpsmith::measure

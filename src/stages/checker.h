// Asks a served model about programs whose score jumped. Its opinions are kept; no verdict follows from them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jobs.h"
#include "known_hacks.h"
#include "verifier.h"
#include "warpsmith/method/checker.h"

namespace warpsmith::stages {

class Checker {
 public:
  // Keeps references. Does nothing where the stage has no `checker`.
  Checker(const StageInputs& inputs, const TaskSet& tasks, const Verifier& verifier);

  // Before a round's programs have verdicts: what is best now is what their scores are compared with.
  void begin_round();
  // The questions about these programs, which have verdicts; nothing: there are none, or all were asked.
  // Programs of the dataset's files and their variants are not asked about.
  std::optional<JobRequest> ask(int round, const std::vector<std::string>& ids);
  static constexpr const char* kJob = "check";
  // Throws Error where it is no answer to ask().
  void on_job(const JobResult& result);

  // "opinions" and "summary": {"checker"} of an output; nothing where the stage has no checker.
  void write(StageOutput& output) const;

 private:
  const workflow::CheckerSettings* settings() const { return spec_.checker ? &*spec_.checker : nullptr; }
  double best_before(const std::string& task) const;

  const workflow::StageSpec& spec_;
  const TaskSet& tasks_;
  const Verifier& verifier_;
  std::optional<KnownHacks> hacks_;
  std::map<std::string, double> before_;  // by task
  std::vector<Json> open_;                // opinions of this round's job without what it says, in its order
  int round_ = 0;
  std::set<std::string> asked_;
  std::vector<Json> opinions_;
  Spent spent_;
  std::uint64_t refused_ = 0;
};

}  // namespace warpsmith::stages

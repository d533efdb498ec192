// Guesses the speed of programs that compiled from programs that were measured, so that the slowest of a
// round need not be measured. A guess is log(speedup) less the median of its task, so that tasks can be
// compared; a task of which no right program is known has no guesses, and its programs are all measured. What
// is right and what is wrong is not guessed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jobs.h"

namespace warpsmith::stages {

// Fewest right programs to learn from.
inline constexpr std::size_t kFewestToLearnFrom = 30;
// Of those that would be skipped, the share that is measured all the same; one at least.
inline constexpr double kBlindShare = 0.1;

// The setting `skip` of a stage; 0 where its kind has none.
double skip_of(const workflow::StageSpec& spec);

class Surrogate {
 public:
  using Verdicts = std::map<std::string, Known>;  // by candidate id

  // Keeps a reference.
  explicit Surrogate(const workflow::StageSpec& spec) : spec_(spec), share_(skip_of(spec)) {}

  // Those of `compiled` that are not to be measured; `known`: all verdicts until now. Pure but for the
  // figures: the draw goes by the seed, the stage, the round and the job.
  std::set<std::string> choose(const JobResult& compilation, const std::vector<Compiled>& compiled,
                               const Verdicts& known);
  bool has_skipped(const std::string& id) const { return skipped_.contains(id); }

  // What the guesses of the round were worth, below; `known`: the verdicts at its end.
  Json end_round(int round, const Verdicts& known);
  // The same of all rounds together, and "rounds": those of each.
  Json summary() const;

 private:
  // Figures: {"learned_from": right programs, of the newest model; "guessed", "skipped", "blind": candidates;
  //  "right": measured right ones that had been guessed, and where there are enough "rank_correlation" over
  //  them; "blind_right", "blind_rank_correlation": of the blind ones;
  //  "lost": blind ones that were above their task's best before or in the faster half of the round's right
  //  ones, "lost_share" of the blind ones that got a verdict;
  //  "note": why nothing was skipped}
  struct Guess {
    std::string id, task;
    double guessed = 0;
    double median = 0, best = 0;  // of its task, before: log(speedup)
    bool skipped = false, blind = false;
    bool judged = false, lost = false;  // it got a verdict; blind and good
    std::optional<double> measured;     // as `guessed`, where it is right
  };
  struct TaskFigures {
    double median = 0, best = 0;
    std::vector<double> features;  // means
  };

  const std::vector<double>& features_of(const Candidate& candidate, const CodeFacts& code);
  std::vector<double> row_of(const std::vector<double>& features, const TaskFigures& task) const;
  std::map<std::string, TaskFigures> tasks_of(const std::vector<const Known*>& right);
  std::vector<Guess> guess(const std::vector<Compiled>& compiled, const Verdicts& known);
  Json figures(const std::vector<Guess>& guesses) const;

  const workflow::StageSpec& spec_;
  const double share_;
  std::map<std::string, std::vector<double>> features_;  // by candidate id
  std::size_t learned_from_ = 0;
  std::string note_;
  std::vector<Guess> round_, ended_;
  std::set<std::string> skipped_;
  std::vector<Json> rounds_;
};

}  // namespace warpsmith::stages

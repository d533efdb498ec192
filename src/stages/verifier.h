// Gives every candidate a verdict: compile, then measure what compiled. Each distinct source once.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jobs.h"
#include "knowledge.h"
#include "surrogate.h"

namespace warpsmith::stages {

class Verifier {
 public:
  // `known`: verdicts that are taken over (known_candidates). Keeps a reference to `inputs`.
  Verifier(const StageInputs& inputs, std::vector<Known> known);

  // The first job that candidates without a verdict need; nothing where all have one. A candidate whose
  // verdict is not_measured is tried again, unless it was skipped because it seemed to be slow. `expected`
  // (by candidate id) goes with those of dataset files.
  std::optional<JobRequest> begin(int round, const std::vector<Candidate>& candidates);
  // The next job; nothing where all of begin() have a verdict now. Lost items are not_measured.
  std::optional<JobRequest> on_job(const JobResult& result);

  // A verdict that needs no job: an answer without code.
  void add_verdict(const Candidate& candidate, Verdict verdict, const std::string& detail);
  // Where the stage skips what seems to be slow: the round's figures, and those of all (surrogate.h); null:
  // it does not.
  Json end_round(int round) { return surrogate_ ? surrogate_->end_round(round, known_) : Json(); }
  Json skipping() const { return surrogate_ ? surrogate_->summary() : Json(); }
  void expect(const std::string& id, const std::string& verdict) { expected_[id] = verdict; }

  const Known& at(const std::string& id) const { return known_.at(id); }
  // Whether the program, layout and comments aside, is one that no model wrote and that was known before.
  bool is_by_others(const std::string& id) const;
  // Whether it is known: by others, or a program of others for any task with names and constants taken out,
  // of the source or of the machine code. A model's program that is not known is novel.
  bool is_known(const std::string& id) const;
  // Whether it is novel, and but for names and constants what a template writes for a task that a model is
  // to solve.
  bool is_of_template(const std::string& id) const;
  // Ids of the distinct candidates that this stage came upon, in order; also those with a verdict from
  // upstream.
  const std::vector<std::string>& met() const { return met_; }
  const std::map<std::string, double>& best() const { return best_; }  // speedup by task
  // Time of eager / time of the task's best baseline but eager, of those that the stage knows of. Of none: 1
  // where eager alone is timed, and is the best; else nothing.
  std::optional<double> best_baseline(const std::string& task) const;

 private:
  void settle(Known known);
  // Those that are to be measured; the others get their verdict.
  std::vector<Compiled> without_slow(const JobResult& compilation, std::vector<Compiled> compiled);
  void learn_from(const Known& known);  // where no model wrote it
  void meet(const std::string& id);
  void take_baselines(const std::vector<Json>& extras);
  Measurement empty_measurement(const Candidate& candidate, Verdict verdict, std::string detail) const;

  const StageInputs& inputs_;
  const workflow::StageSpec& spec_;
  std::map<std::string, Known> known_;
  std::set<std::string> forms_of_others_;         // of programs that no model wrote, by task
  std::set<std::string> structures_of_others_;    // structure_of()
  std::set<std::string> codes_of_others_;         // target and code_structure()
  std::map<std::string, Json> code_;              // Known::code by id, of what was compiled here
  mutable std::map<std::string, bool> is_known_;  // by id, where it was asked for
  std::map<std::string, std::string> expected_;
  std::map<std::string, double> best_;
  std::map<std::string, std::map<std::string, double>> baselines_;  // ratios of a task's, but of eager
  std::vector<std::string> met_;
  std::set<std::string> met_set_;
  std::optional<Surrogate> surrogate_;
  std::map<std::string, Candidate> pending_;  // by id: asked for and without a verdict
};

}  // namespace warpsmith::stages

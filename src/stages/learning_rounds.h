// The rounds of a stage that learns from its own samples: the newest model answers prompts, every answer gets
// a verdict, in several turns where the stage wants them, and the model is trained. Which prompts, and what
// is learned from the samples, is the stage's own.
//
//   begin ─► on_job … ─► stage: what is learned ─► ask(train job) ─► on_trained ─► end ─► begin or finish
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checker.h"
#include "sampling_round.h"

namespace warpsmith::stages {

struct RoundSettings {
  int rounds = 1, turns = 1;
  // Known hacks that the prompts of later turns quote; null: none.
  std::function<method::HackQuotes(const std::string& task)> quotes = {};
};

class LearningRounds {
 public:
  // Keeps references; `init` is the model of the first round.
  LearningRounds(const StageInputs& inputs, const TaskSet& tasks, Verifier& verifier, RoundSettings settings,
                 Checkpoint init);

  int next() const { return round_.number() + 1; }  // the round that begin() would begin
  int number() const { return round_.number(); }    // the one at work, from 1
  std::vector<Sample>& samples() { return round_.samples(); }
  const Checkpoint& checkpoint() const { return checkpoint_; }  // the newest
  const std::vector<Json>& ended() const { return ended_; }     // what end() made of each round

  // A server that is to have the newest weights gets them first: they are exported.
  StageStep begin(std::vector<Prompt> prompts);
  // The step to the next job of sampling; nothing where all samples have a verdict, and the checker was
  // asked: the stage goes on.
  std::optional<StageStep> on_job(const JobResult& result);
  StageStep ask(JobRequest job) const;
  // The result of the job that trained; throws Error where it is another.
  void on_trained(const JobResult& result);
  // Writes the round down, with `more` keys of the stage's own. True: another one is to begin.
  bool end(const Json& more);
  // The stage's output, with `summary` keys of its own.
  StageStep finish(const Json& summary);

 private:
  StageProgress progress() const;
  std::vector<Prompt> refinements() const;  // of the samples of this turn

  const workflow::StageSpec& spec_;
  const TaskSet& tasks_;
  Verifier& verifier_;
  const RoundSettings settings_;
  SamplingRound round_;
  Checker checker_;
  Checkpoint checkpoint_;
  bool trained_ = false;         // some round did
  std::string exported_;         // path of the checkpoint that the stage's folder `model` holds
  std::vector<Prompt> waiting_;  // of the round that begins behind an export
  std::vector<Json> curve_;      // of this round's training
  std::vector<Json> ended_;
  std::vector<Sample> all_;    // of the rounds that have ended, without their texts
  std::uint64_t refused_ = 0;  // samples, of the rounds that have ended
  bool finished_ = false;
};

}  // namespace warpsmith::stages

// The rounds of a stage that learns from its own samples: the newest model answers prompts, every answer gets
// a verdict, in several turns where the stage wants them, and the model is trained. Which prompts, and what
// is learned from the samples, is the stage's own.
//
//   begin ─► on_job … ─► stage: what is learned ─► ask(train job) ─► on_trained ─► end ─► begin or finish
//
// With `ahead` the next round is drawn as soon as the samples of the one at work are there: its prompts are
// made then, and the newest model of that time answers them, while the round at work gets its verdicts and is
// trained on. What comes of it waits until its round begins, so the order in which jobs end decides nothing.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checker.h"
#include "sampling_round.h"

namespace warpsmith::stages {

struct RoundSettings {
  int rounds = 1, turns = 1;
  int ahead = 0;  // rounds that are sampled beside the one at work: 0 or 1
  std::function<std::vector<Prompt>(int round)> prompts;  // by what is known when it is called
  // Known hacks that the prompts of later turns quote; null: none.
  std::function<method::HackQuotes(const std::string& task)> quotes = {};
};

class LearningRounds {
 public:
  // Keeps references; `init` is the model of the first round.
  LearningRounds(const StageInputs& inputs, const TaskSet& tasks, Verifier& verifier, RoundSettings settings,
                 Checkpoint init);

  int number() const { return number_; }  // the round at work, from 1
  std::vector<Sample>& samples() { return at_work().samples(); }
  const Checkpoint& checkpoint() const { return checkpoint_; }  // the newest
  // That which drew the round's samples, where it is not the newest; else empty.
  std::string older_policy() const { return behind_ > 0 ? at_work().checkpoint().path : ""; }
  const std::vector<Json>& ended() const { return ended_; }  // what end() made of each round

  // The next round. A server that is to have the newest weights gets them first: they are exported. Returns
  // as on_job() does.
  std::optional<StageStep> begin();
  // The step to the next job of sampling; nothing where all samples have a verdict, and the checker was
  // asked: the stage goes on.
  std::optional<StageStep> on_job(const JobResult& result);
  StageStep ask(JobRequest job);
  // The result of the job that trained; throws Error where it is another.
  void on_trained(const JobResult& result);
  // Writes the round down, with `more` keys of the stage's own. True: another one is to begin.
  bool end(const Json& more);
  // The stage's output, with `summary` keys of its own.
  StageStep finish(const Json& summary);

 private:
  SamplingRound& of(int round) { return both_[static_cast<std::size_t>(round % 2)]; }
  SamplingRound& at_work() { return of(number_); }
  const SamplingRound& at_work() const { return both_[static_cast<std::size_t>(number_ % 2)]; }
  JobRequest draw();
  StageStep on_weights(const JobResult& result);
  StageStep step(std::vector<JobRequest> jobs);
  Spent spent() const;
  StageProgress progress() const;
  std::vector<Prompt> refinements() const;  // of the samples of this turn

  const workflow::StageSpec& spec_;
  const TaskSet& tasks_;
  Verifier& verifier_;
  const RoundSettings settings_;
  std::array<SamplingRound, 2> both_;  // of(): the round at work, and the one that is drawn ahead
  int number_ = 0, drawn_ = 0;         // rounds: at work, and the last one whose prompts were made
  std::optional<JobRequest> beside_;   // goes out with the next step
  std::optional<JobResult> arrived_;   // the answers of the round that is drawn ahead
  Checker checker_;
  Checkpoint checkpoint_;
  bool trained_ = false;     // some round did
  std::string exported_;     // path of the checkpoint that the stage's folder `model` holds
  bool exporting_ = false;   // that of the last round drawn, before a server is asked
  int behind_ = 0;           // updates by which the policy of this round is older than the newest model
  std::vector<Json> curve_;  // of this round's training
  std::vector<Json> ended_;
  std::vector<Sample> all_;    // of the rounds that have ended, without their texts
  std::uint64_t refused_ = 0;  // samples, of the rounds that have ended
  Spent spent_;                // of a server, in these rounds
  bool finished_ = false;
};

}  // namespace warpsmith::stages

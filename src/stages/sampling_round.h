// One round of samples: prompts for a `generate` job, then a verdict on every answer. In a round of several
// turns answers are asked again, with what became of them:
//
//   begin ─► on_job … ─► next_turn ─► on_job … ─► end_turns
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "samples.h"
#include "verifier.h"

namespace warpsmith::stages {

class SamplingRound {
 public:
  // Keeps references to both.
  SamplingRound(const workflow::StageSpec& spec, Verifier& verifier) : spec_(spec), verifier_(verifier) {}

  // The job that answers the prompts with `checkpoint`. What the round before left is gone.
  JobRequest begin(int number, const Checkpoint& checkpoint, std::vector<Prompt> prompts);
  // The same for the round's next turn: prompts that name the sample of this turn that they ask again.
  JobRequest next_turn(std::vector<Prompt> prompts);
  // The next job; nothing where all samples of the turn have a verdict now. Throws Error where `result` is
  // none of this turn's.
  std::optional<JobRequest> on_job(const JobResult& result);
  // Brings the samples into the order of the prompts; the turns of one sample follow one another.
  void end_turns();

  int number() const { return number_; }
  int turn() const { return turn_; }
  // In the order of the prompts; those of one prompt follow one another. Later turns come behind, until
  // end_turns().
  std::vector<Sample>& samples() { return samples_; }
  const std::vector<Sample>& samples() const { return samples_; }
  std::uint64_t lost() const { return lost_; }  // samples that went with a lost shard
  std::uint64_t exemplars_left_out() const { return exemplars_left_out_; }
  // What the stage's server took and did not give: of this round, and of all until now.
  std::uint64_t refused() const { return refused_; }
  const Spent& spent() const { return spent_; }
  const Spent& spent_in_all() const { return spent_in_all_; }

 private:
  JobRequest generate();
  std::optional<JobRequest> named(std::optional<JobRequest> job) const;  // as its turn has it

  const workflow::StageSpec& spec_;
  Verifier& verifier_;
  int number_ = 0, turn_ = 1;
  Checkpoint checkpoint_;
  std::vector<Prompt> prompts_;  // of the turn
  std::vector<Sample> samples_;
  std::uint64_t lost_ = 0, exemplars_left_out_ = 0, refused_ = 0;
  Spent spent_, spent_in_all_;
};

}  // namespace warpsmith::stages

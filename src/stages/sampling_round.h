// One round of samples: prompts for a `generate` job, then a verdict on every answer. In a round of several
// turns answers are asked again, with what became of them:
//
//   begin ─► generate ─► on_job … ─► next_turn ─► generate ─► on_job … ─► end_turns
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

  // `checkpoint` is to answer the prompts, in all turns. What an earlier round left is gone.
  void begin(int number, const Checkpoint& checkpoint, std::vector<Prompt> prompts);
  // The round's next turn: prompts that name the sample of this turn that they ask again.
  void next_turn(std::vector<Prompt> prompts);
  // The job that answers the turn's prompts. `before`: what a server took in earlier rounds.
  JobRequest generate(const Spent& before = {}) const;
  // The next job; nothing where all samples of the turn have a verdict now. Throws Error where `result` is
  // none of this turn's.
  std::optional<JobRequest> on_job(const JobResult& result);
  // Brings the samples into the order of the prompts; the turns of one sample follow one another.
  void end_turns();

  int number() const { return number_; }
  int turn() const { return turn_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  void set_digest(const std::string& digest) { checkpoint_.digest = digest; }
  // In the order of the prompts; those of one prompt follow one another. Later turns come behind, until
  // end_turns().
  std::vector<Sample>& samples() { return samples_; }
  const std::vector<Sample>& samples() const { return samples_; }
  std::uint64_t lost() const { return lost_; }  // samples that went with a lost shard
  std::uint64_t exemplars_left_out() const { return exemplars_left_out_; }
  // What the stage's server did not give, and what it took.
  std::uint64_t refused() const { return refused_; }
  const Spent& spent() const { return spent_; }

 private:
  std::optional<JobRequest> named(std::optional<JobRequest> job) const;  // as its turn has it

  const workflow::StageSpec& spec_;
  Verifier& verifier_;
  int number_ = 0, turn_ = 1;
  Checkpoint checkpoint_;
  std::vector<Prompt> prompts_;  // of the turn
  std::vector<Sample> samples_;
  std::uint64_t lost_ = 0, exemplars_left_out_ = 0, refused_ = 0;
  Spent spent_;
};

}  // namespace warpsmith::stages

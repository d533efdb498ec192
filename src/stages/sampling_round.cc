#include "sampling_round.h"

#include "kinds.h"

namespace warpsmith::stages {

JobRequest SamplingRound::begin(int number, const Checkpoint& checkpoint, std::vector<Prompt> prompts) {
  number_ = number;
  prompts_ = std::move(prompts);
  samples_.clear();
  lost_ = exemplars_left_out_ = refused_ = 0;
  spent_ = {};
  return generate_request(spec_, number_, checkpoint, prompts_, spent_in_all_);
}

std::optional<JobRequest> SamplingRound::on_job(const JobResult& result) {
  if (result.round != number_) unexpected(spec_, result);
  if (result.job == "compile" || result.job == "measure") return verifier_.on_job(result);
  if (result.job != "generate") unexpected(spec_, result);
  Generated generated = read_generated(spec_, prompts_, result, verifier_);
  samples_ = std::move(generated.samples);
  lost_ = generated.lost;
  exemplars_left_out_ = generated.exemplars_left_out;
  refused_ = generated.refused;
  spent_ = generated.spent;
  spent_in_all_ += spent_;
  return verifier_.begin(number_, generated.candidates);
}

}  // namespace warpsmith::stages

#include "sampling_round.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "kinds.h"

namespace warpsmith::stages {

void SamplingRound::begin(int number, const Checkpoint& checkpoint, std::vector<Prompt> prompts) {
  number_ = number;
  turn_ = 1;
  checkpoint_ = checkpoint;
  prompts_ = std::move(prompts);
  samples_.clear();
  lost_ = exemplars_left_out_ = refused_ = 0;
  spent_ = {};
}

void SamplingRound::next_turn(std::vector<Prompt> prompts) {
  ++turn_;
  prompts_ = std::move(prompts);
}

JobRequest SamplingRound::generate(const Spent& before) const {
  Spent spent = before;
  spent += spent_;
  return *named(generate_request(spec_, number_, checkpoint_, prompts_, spent));
}

std::optional<JobRequest> SamplingRound::named(std::optional<JobRequest> job) const {
  if (job) job->job = job_of_turn(job->job, turn_);
  return job;
}

std::optional<JobRequest> SamplingRound::on_job(const JobResult& result) {
  const std::string kind(kind_of_job(result.job));
  if (result.round != number_ || result.job != job_of_turn(kind, turn_)) unexpected(spec_, result);
  if (kind == "compile" || kind == "measure") return named(verifier_.on_job(result));
  if (kind != "generate") unexpected(spec_, result);
  Generated generated = read_generated(spec_, prompts_, turn_, result, verifier_);
  std::move(generated.samples.begin(), generated.samples.end(), std::back_inserter(samples_));
  lost_ += generated.lost;
  exemplars_left_out_ += generated.exemplars_left_out;
  refused_ += generated.refused;
  spent_ += generated.spent;
  return named(verifier_.begin(number_, generated.candidates));
}

void SamplingRound::end_turns() {
  std::map<std::string, std::size_t> place;  // of a prompt
  for (const Sample& s : samples_) place.emplace(s.item, place.size());
  std::stable_sort(samples_.begin(), samples_.end(), [&](const Sample& a, const Sample& b) {
    return std::tuple(place.at(a.item), a.number, a.turn) < std::tuple(place.at(b.item), b.number, b.turn);
  });
}

}  // namespace warpsmith::stages

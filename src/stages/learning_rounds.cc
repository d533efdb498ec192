#include "learning_rounds.h"

#include <fmt/format.h>

#include "kinds.h"
#include "summary.h"

namespace warpsmith::stages {

LearningRounds::LearningRounds(const StageInputs& inputs, const TaskSet& tasks, Verifier& verifier,
                               RoundSettings settings, Checkpoint init)
    : spec_(inputs.spec),
      tasks_(tasks),
      verifier_(verifier),
      settings_(std::move(settings)),
      round_(inputs.spec, verifier),
      checker_(inputs, tasks, verifier),
      checkpoint_(std::move(init)) {}

StageStep LearningRounds::begin(std::vector<Prompt> prompts) {
  curve_.clear();
  checker_.begin_round();
  if (spec_.policy && workflow::has_own_model(spec_) && exported_ != checkpoint_.path) {
    waiting_ = std::move(prompts);
    JobRequest job = export_request(spec_, next(), checkpoint_.path);
    job.job = kWeights;
    return ask(std::move(job));
  }
  return ask(round_.begin(next(), checkpoint_, std::move(prompts)));
}

std::optional<StageStep> LearningRounds::on_job(const JobResult& result) {
  if (finished_) unexpected(spec_, result);
  if (result.job == kWeights) {
    if (result.round != next() || exported_ == checkpoint_.path) unexpected(spec_, result);
    if (result.items.empty() || result.items.front().record.is_null())
      throw Error(spec_.name + ": the weights for its server were lost with their shard", kExitFailed);
    checkpoint_.digest = result.items.front().record.value("digest", checkpoint_.digest);
    exported_ = checkpoint_.path;
    return ask(round_.begin(next(), checkpoint_, std::move(waiting_)));
  }
  if (result.job == Checker::kJob) {
    checker_.on_job(result);
    return std::nullopt;
  }
  if (auto job = round_.on_job(result)) return ask(std::move(*job));
  if (round_.turn() < settings_.turns)
    if (auto prompts = refinements(); !prompts.empty()) return ask(round_.next_turn(std::move(prompts)));
  round_.end_turns();
  std::vector<std::string> ids;
  for (const Sample& sample : samples()) ids.push_back(sample.candidate);
  if (auto job = checker_.ask(number(), ids)) return ask(std::move(*job));
  return std::nullopt;
}

// Of a program that was not measured nothing is known that could be told.
std::vector<Prompt> LearningRounds::refinements() const {
  const method::PromptForm form = form_of(spec_.prompt);
  const int turn = round_.turn() + 1;
  std::vector<Prompt> prompts;
  for (const Sample& s : round_.samples()) {
    const Known& known = verifier_.at(s.candidate);
    if (s.turn + 1 != turn || known.measurement.verdict == Verdict::kNotMeasured) continue;
    Prompt prompt{fmt::format("{}/{}/{}", s.item, s.number, turn), s.task, "", 1, s.island};
    prompt.first = s.item;
    prompt.number = s.number;
    prompt.parent = s.candidate;
    const method::Attempt attempt{method::extract_source(s.text, form).value_or(""), known.measurement,
                                  !s.finished};
    set_texts(method::refinement_prompts(tasks_.at(s.task), attempt, form,
                                         settings_.quotes ? settings_.quotes(s.task) : method::HackQuotes()),
              &prompt);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

StageStep LearningRounds::ask(JobRequest job) const {
  StageStep step = stages::ask(std::move(job), progress());
  if (!ended_.empty()) step.round = ended_.back();
  return step;
}

void LearningRounds::on_trained(const JobResult& result) {
  if (finished_ || result.round != number() || result.job != "train") unexpected(spec_, result);
  Trained trained = read_trained(spec_, result);
  checkpoint_ = trained.checkpoint;
  checkpoint_.digest = trained.digest;
  trained_ = true;
  curve_ = std::move(trained.curve);
}

StageProgress LearningRounds::progress() const {
  StageProgress p = {{"round", number()}, {"rounds", settings_.rounds}};
  if (!ended_.empty())
    for (const char* key : {"valid_share", "distinct_share", "best", "best_author", "median", "geomean",
                            "wins", "above_1_01", "host_bound", "repeated", "known", "novel", "loss",
                            "mean_reward", "groups_skipped", "skip", "note"})
      if (ended_.back().contains(key)) p[key] = ended_.back()[key];
  return p;
}

bool LearningRounds::end(const Json& more) {
  Json round = figures(counted(samples(), verifier_), tasks_);
  round["round"] = number();
  round["lost_samples"] = round_.lost();
  round["exemplars_left_out"] = round_.exemplars_left_out();
  std::int64_t tokens = 0;
  for (const Sample& s : samples()) tokens += s.tokens;
  if (tokens > 0) round["tokens"] = tokens;
  for (int turn = 1; turn <= settings_.turns && settings_.turns > 1; ++turn) {
    std::vector<Sample> of_turn;
    for (const Sample& s : samples())
      if (s.turn == turn) of_turn.push_back(s);
    round["turns"].push_back(figures(counted(of_turn, verifier_), tasks_));
  }
  if (Json skip = verifier_.end_round(number()); !skip.is_null()) round["skip"] = std::move(skip);
  if (spec_.policy) {
    round["server"] = server_json(*spec_.policy, round_.spent(), round_.refused());
    refused_ += round_.refused();
  }
  if (workflow::has_own_model(spec_)) {
    round["checkpoint"] = checkpoint_.path;
    round["step"] = checkpoint_.step;
  }
  if (!curve_.empty()) {
    round["loss"] = last_loss(curve_);
    round["curve_tail"] = curve_tail(curve_);
  }
  round.update(more);
  ended_.push_back(std::move(round));
  for (Sample& s : samples()) {
    s.prompt.clear();
    s.text.clear();
    all_.push_back(std::move(s));
  }
  return number() < settings_.rounds;
}

StageStep LearningRounds::finish(const Json& summary) {
  finished_ = true;
  StageStep step;
  step.finished = true;
  step.output = begin_output(spec_);
  step.output["candidates"] = candidates_json(verifier_);
  step.output["samples"] = Json::array();
  for (const Sample& s : all_) step.output["samples"].push_back(sample_json(s, verifier_, tasks_));
  if (workflow::has_own_model(spec_)) {
    step.output["checkpoint"] = checkpoint_.path;
    step.output["checkpoint_digest"] = trained_ ? checkpoint_.digest : "";
    step.output["step"] = checkpoint_.step;
  }
  step.output["rounds"] = ended_;
  step.output["summary"] = figures_by_group(counted(all_, verifier_), tasks_);
  step.output["summary"]["loss"] = ended_.back().value("loss", Json());
  step.output["summary"].update(summary);
  if (spec_.policy)
    step.output["summary"]["server"] = server_json(*spec_.policy, round_.spent_in_all(), refused_);
  if (Json skip = verifier_.skipping(); !skip.is_null()) step.output["summary"]["skip"] = std::move(skip);
  checker_.write(step.output);
  step.progress = progress();
  step.round = ended_.back();
  return step;
}

}  // namespace warpsmith::stages

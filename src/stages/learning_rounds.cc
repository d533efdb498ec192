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
      both_{SamplingRound(inputs.spec, verifier), SamplingRound(inputs.spec, verifier)},
      checker_(inputs, tasks, verifier),
      checkpoint_(std::move(init)) {}

std::optional<StageStep> LearningRounds::begin() {
  ++number_;
  curve_.clear();
  checker_.begin_round();
  if (drawn_ < number_) return ask(draw());
  if (!arrived_) return step({});
  const JobResult result = std::move(*arrived_);
  arrived_.reset();
  return on_job(result);
}

// Makes the next round's prompts. Returns the job that its samples wait for.
JobRequest LearningRounds::draw() {
  ++drawn_;
  of(drawn_).begin(drawn_, checkpoint_, settings_.prompts(drawn_));
  if (!spec_.policy || !workflow::has_own_model(spec_) || exported_ == checkpoint_.path)
    return of(drawn_).generate(spent());
  exporting_ = true;
  JobRequest job = export_request(spec_, drawn_, checkpoint_.path);
  job.job = kWeights;
  return job;
}

StageStep LearningRounds::on_weights(const JobResult& result) {
  if (!exporting_ || result.round != drawn_) unexpected(spec_, result);
  if (result.items.empty() || result.items.front().record.is_null())
    throw Error(spec_.name + ": the weights for its server were lost with their shard", kExitFailed);
  exporting_ = false;
  SamplingRound& round = of(drawn_);
  exported_ = round.checkpoint().path;
  round.set_digest(result.items.front().record.value("digest", round.checkpoint().digest));
  if (checkpoint_.path == exported_) checkpoint_.digest = round.checkpoint().digest;
  return ask(round.generate(spent()));
}

std::optional<StageStep> LearningRounds::on_job(const JobResult& result) {
  if (finished_) unexpected(spec_, result);
  if (result.job == kWeights) return on_weights(result);
  if (result.job == Checker::kJob) {
    checker_.on_job(result);
    return std::nullopt;
  }
  if (drawn_ > number_ && result.round == drawn_) {
    if (result.job != "generate" || exporting_ || arrived_) unexpected(spec_, result);
    arrived_ = result;
    return step({});
  }
  auto job = at_work().on_job(result);
  if (result.job == "generate") {
    behind_ = at_work().checkpoint().path == checkpoint_.path ? 0 : 1;
    if (settings_.ahead > 0 && drawn_ < settings_.rounds) beside_ = draw();
  }
  if (job) return ask(std::move(*job));
  if (at_work().turn() < settings_.turns)
    if (auto prompts = refinements(); !prompts.empty()) {
      at_work().next_turn(std::move(prompts));
      return ask(at_work().generate(spent_));
    }
  at_work().end_turns();
  std::vector<std::string> ids;
  for (const Sample& sample : samples()) ids.push_back(sample.candidate);
  if (auto check = checker_.ask(number(), ids)) return ask(std::move(*check));
  return std::nullopt;
}

// Of a program that was not measured nothing is known that could be told.
std::vector<Prompt> LearningRounds::refinements() const {
  const method::PromptForm form = form_of(spec_.prompt);
  const int turn = at_work().turn() + 1;
  std::vector<Prompt> prompts;
  for (const Sample& s : at_work().samples()) {
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

StageStep LearningRounds::ask(JobRequest job) { return step({std::move(job)}); }

StageStep LearningRounds::step(std::vector<JobRequest> jobs) {
  if (beside_) jobs.push_back(std::move(*beside_));
  beside_.reset();
  StageStep step{.jobs = std::move(jobs), .output = {}, .progress = progress()};
  if (!ended_.empty()) step.round = ended_.back();
  return step;
}

// What the server took until now; the round that is drawn ahead has not been read.
Spent LearningRounds::spent() const {
  Spent all = spent_;
  all += at_work().spent();
  return all;
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
  if (drawn_ > number_) p["ahead"] = drawn_;
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
  round["lost_samples"] = at_work().lost();
  round["exemplars_left_out"] = at_work().exemplars_left_out();
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
    round["server"] = server_json(*spec_.policy, at_work().spent(), at_work().refused());
    refused_ += at_work().refused();
    spent_ += at_work().spent();
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
    s.behind = behind_;
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
  if (spec_.policy) step.output["summary"]["server"] = server_json(*spec_.policy, spent_, refused_);
  if (Json skip = verifier_.skipping(); !skip.is_null()) step.output["summary"]["skip"] = std::move(skip);
  checker_.write(step.output);
  step.progress = progress();
  step.round = ended_.back();
  return step;
}

}  // namespace warpsmith::stages

// `contrastive`, stage 3: rounds of prompts with scored exemplars, G samples each, measurement, and a GRPO
// update.
#include <fmt/format.h>

#include <algorithm>

#include "jobs.h"
#include "kinds.h"
#include "samples.h"
#include "summary.h"
#include "verifier.h"
#include "warpsmith/base/random.h"
#include "warpsmith/method/exemplars.h"
#include "warpsmith/method/reward.h"

namespace warpsmith::stages {

namespace {

method::ExemplarSettings exemplar_settings(const workflow::ContrastiveSettings& s) {
  method::ExemplarSettings out;
  switch (s.exemplars) {
    case workflow::Exemplars::kBucket:
      out.kind = method::ExemplarKind::kBucket;
      break;
    case workflow::Exemplars::kIsland:
      out.kind = method::ExemplarKind::kIsland;
      break;
    case workflow::Exemplars::kRandom:
      out.kind = method::ExemplarKind::kRandom;
      break;
    case workflow::Exemplars::kNone:
      out.kind = method::ExemplarKind::kNone;
      break;
  }
  out.bucket_width = s.bucket_width;
  out.bucket_tau = s.bucket_tau;
  out.islands = s.islands;
  out.island_reset_every = s.island_reset_every;
  return out;
}

class ContrastiveStage final : public Stage {
 public:
  explicit ContrastiveStage(StageInputs inputs)
      : inputs_(std::move(inputs)),
        settings_(std::get<workflow::ContrastiveSettings>(inputs_.spec.settings)),
        kind_(method::parse_reward_kind(settings_.reward)),
        tasks_(inputs_.spec.dataset, inputs_.tasks),
        known_(known_candidates(inputs_, inputs_.upstream_order, Comparable::kProtocol)),
        verifier_(inputs_.spec, known_),
        database_(exemplar_settings(settings_)),
        smoother_({settings_.smoothing_clip, settings_.smoothing_window}),
        reference_(require_checkpoint(inputs_)),
        checkpoint_(reference_) {
    if (settings_.rounds < 1 || settings_.prompts < 1 || settings_.group < 1 || tasks_.train().empty())
      throw Error(
          fmt::format("stage {}: needs at least one round, prompt, sample and train task", inputs_.spec.name),
          kExitUsage);
    seed();
  }

  StageStep start() override { return next_round(); }

  StageStep on_job(const JobResult& result) override {
    if (finished_ || result.round != round_) unexpected(inputs_.spec, result);
    if (result.job == "generate") {
      Generated generated = read_generated(inputs_.spec, prompts_, result, verifier_);
      samples_ = std::move(generated.samples);
      lost_ = generated.lost;
      if (auto job = verifier_.begin(round_, generated.candidates)) return ask(std::move(*job), progress());
      return learn();
    }
    if (result.job == "compile" || result.job == "measure") {
      if (auto job = verifier_.on_job(result)) return ask(std::move(*job), progress());
      return learn();
    }
    if (result.job != "train") unexpected(inputs_.spec, result);
    Trained trained = read_trained(inputs_.spec, result);
    checkpoint_ = trained.checkpoint;
    digest_ = trained.digest;
    curve_ = std::move(trained.curve);
    return end_round();
  }

 private:
  std::uint64_t key(std::string_view purpose, std::string_view item = "") const {
    return random_key({inputs_.spec.seed, name_key(inputs_.spec.name), static_cast<std::uint64_t>(round_),
                       name_key(purpose), name_key(item)});
  }

  // What is known of the train tasks before the first round: exemplars, and iteration 0 of the smoothing.
  void seed() {
    for (const std::string& task : tasks_.train()) {
      std::vector<method::Program> programs;
      std::vector<double> rewards;
      for (const Known& k : known_) {
        if (k.candidate.task != task || method::outcome_of(k.measurement) != method::Outcome::kValid)
          continue;
        programs.push_back({k.candidate.id, k.candidate.source(), k.measurement.speedup_rounded});
        rewards.push_back(method::reward_of(k.measurement.speedup_rounded, kind_));
      }
      database_.seed(task, std::move(programs));
      smoother_.add(task, 0, rewards);
    }
  }

  StageStep next_round() {
    ++round_;
    prompts_.clear();
    samples_.clear();
    curve_.clear();
    const method::PromptStyle style = method::parse_prompt_style(inputs_.spec.prompt.style);
    std::map<std::string, int> prompts_of;
    for (int i = 0; i < settings_.prompts; ++i) {
      // Tasks in turn, going on in the next round where this one stops.
      const auto turn = static_cast<std::size_t>(round_ - 1) * static_cast<std::size_t>(settings_.prompts) +
                        static_cast<std::size_t>(i);
      const std::string& task = tasks_.train()[turn % tasks_.train().size()];
      Prompt prompt{fmt::format("{}#{}", task, prompts_of[task]++), task, "", settings_.group, 0};
      const method::Draw draw =
          database_.draw(task, inputs_.spec.prompt.exemplars, key("exemplars", prompt.id));
      std::vector<method::Exemplar> exemplars;
      for (const method::Program& p : draw.exemplars) exemplars.push_back({p.source, p.score});
      prompt.text = method::contrastive_prompt(tasks_.at(task), std::move(exemplars), style);
      prompt.island = draw.island;
      prompts_.push_back(std::move(prompt));
    }
    return ask(generate_request(inputs_.spec, round_, checkpoint_.path, prompts_), progress());
  }

  method::Outcome outcome(const Sample& s) const {
    return method::outcome_of(verifier_.at(s.candidate).measurement);
  }
  double raw_reward(const Sample& s) const {
    return method::reward_of(verifier_.at(s.candidate).measurement.speedup_rounded, kind_);
  }

  // Smoothed rewards of the round's samples.
  void give_rewards() {
    std::map<std::string, std::vector<double>> valid;
    for (const Sample& s : samples_)
      if (outcome(s) == method::Outcome::kValid) valid[s.task].push_back(raw_reward(s));
    for (const auto& [task, rewards] : valid) smoother_.add(task, round_, rewards);
    for (Sample& s : samples_) {
      if (outcome(s) == method::Outcome::kValid) s.reward = smoother_.smooth(s.task, raw_reward(s));
      if (outcome(s) == method::Outcome::kFailure)
        s.reward = smoother_.failure(s.task, settings_.failure_margin);
    }
  }

  // Advantages within each prompt's samples, which follow one another.
  void compare_groups() {
    groups_ = skipped_ = 0;
    for (std::size_t begin = 0, end = 0; begin < samples_.size(); begin = end) {
      std::vector<std::optional<double>> rewards;
      for (end = begin; end < samples_.size() && samples_[end].item == samples_[begin].item; ++end)
        rewards.push_back(samples_[end].reward);
      ++groups_;
      const auto advantages = method::group_advantages(rewards);
      if (!advantages) {
        ++skipped_;
        continue;
      }
      for (std::size_t i = begin; i < end; ++i) samples_[i].advantage = (*advantages)[i - begin];
    }
  }

  // New successes for the prompts of the next rounds.
  void grow_database() {
    for (const Sample& s : samples_) {
      if (outcome(s) != method::Outcome::kValid) continue;
      const Known& known = verifier_.at(s.candidate);
      database_.add(s.task, s.island,
                    {s.candidate, known.candidate.source(), known.measurement.speedup_rounded});
    }
    database_.end_round(round_, key("reset"));
  }

  StageStep learn() {
    give_rewards();
    compare_groups();
    grow_database();
    if (!settings_.update) return end_round();
    TrainJob job{round_, "grpo", checkpoint_, reference_.path, 0, {}};
    std::int64_t tokens = 0, groups = 0;
    std::string group;
    for (const Sample& s : samples_) {
      if (!s.advantage) continue;
      if (s.item != group) {
        tokens += s.prompt_tokens;  // computed once for its group
        ++groups;
      }
      group = s.item;
      tokens += s.tokens;
      job.examples.push_back(make_grpo_example(s));
    }
    if (job.examples.empty()) return end_round();
    // A step takes whole groups, of about batch_tokens together.
    const std::int64_t batch = std::max(1, inputs_.spec.optimizer.batch_tokens);
    const std::int64_t batches = std::clamp<std::int64_t>((tokens + batch - 1) / batch, 1, groups);
    job.steps = std::max(1, settings_.epochs) * batches;
    JobRequest request = train_request(inputs_.spec, job);
    request.params.update({{"epochs", settings_.epochs},
                           {"clip_ratio", settings_.clip_ratio},
                           {"kl", settings_.kl},
                           {"kl_clamp", settings_.kl_clamp}});
    return ask(std::move(request), progress());
  }

  static Json make_grpo_example(const Sample& s) {
    return {{"id", fmt::format("{}/{}", s.item, s.number)},
            {"prompt", s.prompt},
            {"completion", s.text},
            {"weight", 1.0},
            {"group", s.item},
            {"advantage", *s.advantage},
            {"folder", s.folder},
            {"tokens", s.tokens_blob},
            {"logprobs", s.logprobs_blob}};
  }

  StageProgress progress() const {
    StageProgress p = {{"round", round_}, {"rounds", settings_.rounds}};
    if (!rounds_.empty())
      for (const char* key : {"valid_share", "distinct_share", "best", "median", "geomean", "loss",
                              "mean_reward", "groups_skipped"})
        if (rounds_.back().contains(key)) p[key] = rounds_.back()[key];
    return p;
  }

  StageStep end_round() {
    Json round = figures(counted(samples_, verifier_));
    double sum = 0, n = 0;
    for (const Sample& s : samples_)
      if (s.reward) sum += *s.reward, n += 1;
    if (n > 0) round["mean_reward"] = sum / n;
    round["round"] = round_;
    round["lost_samples"] = lost_;
    round["groups"] = groups_;
    round["groups_skipped"] = skipped_;
    round["checkpoint"] = checkpoint_.path;
    round["step"] = checkpoint_.step;
    std::size_t programs = 0;
    for (const std::string& task : tasks_.train()) programs += database_.size(task);
    round["database"] = programs;
    if (!curve_.empty()) {
      round["loss"] = last_loss(curve_);
      round["curve_tail"] = curve_tail(curve_);
    }
    rounds_.push_back(std::move(round));
    for (Sample& s : samples_) {
      s.prompt.clear();
      s.text.clear();
      all_.push_back(std::move(s));
    }
    if (round_ < settings_.rounds) return next_round();
    return finish();
  }

  StageStep finish() {
    finished_ = true;
    StageStep step;
    step.finished = true;
    step.output = begin_output(inputs_.spec);
    step.output["candidates"] = candidates_json(verifier_);
    step.output["samples"] = Json::array();
    for (const Sample& s : all_) step.output["samples"].push_back(sample_json(s, verifier_, tasks_));
    step.output["checkpoint"] = checkpoint_.path;
    step.output["checkpoint_digest"] = digest_;
    step.output["step"] = checkpoint_.step;
    step.output["rounds"] = rounds_;
    Json summary = figures_by_group(counted(all_, verifier_), tasks_);
    for (const char* key : {"groups", "groups_skipped"}) {
      std::uint64_t total = 0;
      for (const Json& r : rounds_) total += r.at(key).get<std::uint64_t>();
      summary[key == std::string_view("groups") ? "prompt_groups" : key] = total;
    }
    summary["database"] = rounds_.back()["database"];
    summary["loss"] = rounds_.back().value("loss", Json());
    step.output["summary"] = std::move(summary);
    step.progress = progress();
    return step;
  }

  const StageInputs inputs_;
  const workflow::ContrastiveSettings settings_;
  const method::RewardKind kind_;
  const TaskSet tasks_;
  const std::vector<Known> known_;
  Verifier verifier_;
  method::ExemplarDatabase database_;
  method::RewardSmoother smoother_;
  const Checkpoint reference_;  // the model of stage 2: of the KL term
  Checkpoint checkpoint_;
  std::string digest_;
  int round_ = 0;
  std::vector<Prompt> prompts_;
  std::vector<Sample> samples_, all_;
  std::uint64_t lost_ = 0, groups_ = 0, skipped_ = 0;
  std::vector<Json> curve_;
  std::vector<Json> rounds_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Stage> make_contrastive(StageInputs inputs) {
  return std::make_unique<ContrastiveStage>(std::move(inputs));
}

}  // namespace warpsmith::stages

// `contrastive`, stage 3: rounds of prompts with scored exemplars, G samples each, measurement, and a GRPO
// update.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kinds.h"
#include "known_hacks.h"
#include "learning_rounds.h"
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

constexpr std::size_t kBytesAToken = 3;  // an ordinary number

// Bytes up to which a prompt takes quotes of known hacks: what the model's context leaves for a prompt, at an
// ordinary number of bytes a token. A prompt that fills the context is answered by nothing.
std::size_t room_for_prompt(const workflow::StageSpec& spec) {
  if (!workflow::has_own_model(spec))  // the server says where it has none
    return std::numeric_limits<std::size_t>::max();
  return kBytesAToken * static_cast<std::size_t>(std::max(0, spec.model.context - spec.sample.max_tokens));
}

class ContrastiveStage final : public Stage {
 public:
  explicit ContrastiveStage(StageInputs inputs)
      : inputs_(std::move(inputs)),
        settings_(std::get<workflow::ContrastiveSettings>(inputs_.spec.settings)),
        kind_(method::parse_reward_kind(settings_.reward)),
        advantage_(method::parse_advantage_kind(settings_.advantage)),
        form_(form_of(inputs_.spec.prompt)),
        tasks_(inputs_.spec.dataset, inputs_.tasks),
        known_(known_candidates(inputs_, inputs_.upstream_order, Comparable::kProtocol)),
        verifier_(inputs_, known_),
        database_(exemplar_settings(settings_)),
        smoother_({settings_.smoothing_clip, settings_.smoothing_window}),
        reference_(first_checkpoint(inputs_)),
        rounds_(inputs_, tasks_, verifier_,
                {settings_.rounds, settings_.turns, settings_.ahead,
                 [this](int round) { return make_prompts(round); },
                 [this](const std::string& task) { return quotes_for(task); }},
                reference_) {
    if (settings_.rounds < 1 || settings_.prompts < 1 || settings_.group < 1 || settings_.turns < 1 ||
        tasks_.train().empty())
      throw Error(
          fmt::format("stage {}: needs at least one round, prompt, sample and train task", inputs_.spec.name),
          kExitUsage);
    seed();
    if (settings_.quote_hacks > 0) hacks_.emplace(inputs_, inputs_.spec.hacks.get());
  }

  StageStep start() override { return next_round(); }

  StageStep on_job(const JobResult& result) override {
    if (result.job == "train") {
      rounds_.on_trained(result);
      return end_round();
    }
    if (auto step = rounds_.on_job(result)) return std::move(*step);
    return learn();
  }

 private:
  std::uint64_t key(int round, std::string_view purpose, std::string_view item = "") const {
    return random_key({inputs_.spec.seed, name_key(inputs_.spec.name), static_cast<std::uint64_t>(round),
                       name_key(purpose), name_key(item)});
  }

  // What is known of the train tasks before the first round: exemplars, and iteration 0 of the smoothing.
  void seed() {
    for (const std::string& task : tasks_.train()) {
      std::vector<method::Program> programs;
      std::vector<double> rewards;
      for (const Known& k : known_) {
        if (k.candidate.task != task || !is_example(k.candidate, form_.answer) ||
            outcome(k.measurement) != method::Outcome::kValid)
          continue;
        programs.push_back({k.candidate.id, k.candidate.source(), k.measurement.speedup_rounded});
        if (is_smoothed()) rewards.push_back(raw_reward(k.measurement));
      }
      database_.seed(task, std::move(programs));
      smoother_.add(task, 0, rewards);
    }
  }

  // What the rounds until now have confirmed.
  void learn_hacks() {
    if (settings_.quote_hacks == 0) return;
    for (const Sample& s : rounds_.samples()) hacks_->learn(verifier_.at(s.candidate));
  }

  StageStep next_round() {
    if (auto step = rounds_.begin()) return std::move(*step);
    return learn();
  }

  std::vector<Prompt> make_prompts(int round) const {
    std::vector<Prompt> prompts;
    std::map<std::string, int> prompts_of;
    for (int i = 0; i < settings_.prompts; ++i) {
      // Tasks in turn, going on in the next round where this one stops.
      const auto turn = static_cast<std::size_t>(round - 1) * static_cast<std::size_t>(settings_.prompts) +
                        static_cast<std::size_t>(i);
      const std::string& task = tasks_.train()[turn % tasks_.train().size()];
      Prompt prompt{fmt::format("{}#{}", task, prompts_of[task]++), task, "", settings_.group, 0};
      const bool is_plain = Random(key(round, "plain", prompt.id)).uniform() < settings_.plain_share;
      const method::Draw draw = database_.draw(task, is_plain ? 0 : inputs_.spec.prompt.exemplars,
                                               key(round, "exemplars", prompt.id));
      std::vector<method::Exemplar> exemplars;
      for (const method::Program& p : draw.exemplars) exemplars.push_back({p.source, p.score});
      set_texts(method::contrastive_prompts(tasks_.at(task), std::move(exemplars), form_, quotes_for(task)),
                &prompt);
      prompt.island = draw.island;
      prompts.push_back(std::move(prompt));
    }
    return prompts;
  }

  method::HackQuotes quotes_for(const std::string& task) const {
    if (!hacks_) return {};
    return {method::choose_hacks(hacks_->cases(), task, settings_.quote_hacks),
            room_for_prompt(inputs_.spec)};
  }

  method::Outcome outcome(const Sample& s) const { return outcome(verifier_.at(s.candidate).measurement); }
  method::Outcome outcome(const Measurement& m) const {
    return method::outcome_of(m, settings_.reward_within);
  }
  // Milestones are steps of a fixed height, which smoothing would take from them.
  bool is_smoothed() const { return kind_ != method::RewardKind::kMilestones; }
  double raw_reward(const Measurement& m) const { return method::reward_of(m.speedup_rounded, kind_); }

  double milestone(const Sample& s) const {
    const Measurement& m = verifier_.at(s.candidate).measurement;
    return method::milestone_of(method::over_eager(m), verifier_.best_baseline(s.task));
  }

  // Of what counts, before its length does.
  double reward(const Sample& s) const {
    const bool failed = outcome(s) == method::Outcome::kFailure;
    if (!is_smoothed()) return failed ? method::kFailedMilestone : milestone(s);
    return failed ? smoother_.failure(s.task, settings_.failure_margin)
                  : smoother_.smooth(s.task, raw_reward(verifier_.at(s.candidate).measurement));
  }

  // The same, less what its kernels and its length cost.
  double whole_reward(const Sample& s) const {
    double whole = reward(s);
    if (outcome(s) == method::Outcome::kValid)
      whole = method::less_libraries(whole, settings_.library_penalty,
                                     verifier_.at(s.candidate).measurement.own_share);
    return method::less_length(whole, settings_.length_penalty, tokens_of(s), inputs_.spec.sample.max_tokens);
  }

  // Rewards of the round's samples.
  void give_rewards() {
    std::map<std::string, std::vector<double>> valid;
    if (is_smoothed())
      for (const Sample& s : rounds_.samples())
        if (outcome(s) == method::Outcome::kValid)
          valid[s.task].push_back(raw_reward(verifier_.at(s.candidate).measurement));
    for (const auto& [task, rewards] : valid) smoother_.add(task, rounds_.number(), rewards);
    for (Sample& s : rounds_.samples())
      if (outcome(s) != method::Outcome::kLeftOut) s.reward = whole_reward(s);
  }

  // Not every server counts them for each answer.
  static std::int64_t tokens_of(const Sample& s) {
    return s.tokens > 0 ? s.tokens : static_cast<std::int64_t>(s.text.size() / kBytesAToken + 1);
  }

  // What the samples [begin, end) of a prompt are compared by. The turns of one sample follow one another.
  method::Rewards returns_of(std::size_t begin, std::size_t end) {
    std::vector<Sample>& samples = rounds_.samples();
    std::vector<method::Rewards> turns;
    for (std::size_t i = begin; i < end; ++i) {
      if (i == begin || samples[i].number != samples[i - 1].number) turns.emplace_back();
      turns.back().push_back(samples[i].reward);
    }
    if (settings_.turns > 1) turns = method::discounted(turns, settings_.turn_discount);
    method::Rewards all;
    for (const method::Rewards& one : turns) all.insert(all.end(), one.begin(), one.end());
    if (settings_.turns > 1)
      for (std::size_t i = begin; i < end; ++i) samples[i].discounted = all[i - begin];
    return all;
  }

  // Advantages within each prompt's samples, all their turns, which follow one another.
  void compare_groups() {
    groups_ = skipped_ = 0;
    std::vector<Sample>& samples = rounds_.samples();
    for (std::size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
      while (end < samples.size() && samples[end].item == samples[begin].item) ++end;
      ++groups_;
      const auto advantages = method::advantages_of(returns_of(begin, end), advantage_);
      if (!advantages) {
        ++skipped_;
        continue;
      }
      for (std::size_t i = begin; i < end; ++i) samples[i].advantage = (*advantages)[i - begin];
    }
  }

  // New successes for the prompts of the next rounds.
  void grow_database() {
    for (const Sample& s : rounds_.samples()) {
      if (outcome(s) != method::Outcome::kValid) continue;
      const Known& known = verifier_.at(s.candidate);
      database_.add(s.task, s.island,
                    {s.candidate, known.candidate.source(), known.measurement.speedup_rounded});
    }
    database_.end_round(rounds_.number(), key(rounds_.number(), "reset"));
  }

  StageStep learn() {
    give_rewards();
    compare_groups();
    grow_database();
    learn_hacks();
    if (!settings_.update) return end_round();
    TrainJob job{rounds_.number(),      "grpo", rounds_.checkpoint(), reference_.path, 0, {},
                 rounds_.older_policy()};
    std::int64_t tokens = 0, groups = 0;
    std::string group;
    for (const Sample& s : rounds_.samples()) {
      if (!s.advantage) continue;
      if (s.item != group || s.turn > 1) tokens += s.prompt_tokens;  // the first turn's: once for its group
      groups += s.item != group;
      group = s.item;
      tokens += tokens_of(s);
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
    return rounds_.ask(std::move(request));
  }

  static Json make_grpo_example(const Sample& s) {
    Json example = {{"id", s.id()},    {"prompt", s.prompt},        {"completion", s.text},  {"weight", 1.0},
                    {"group", s.item}, {"advantage", *s.advantage}, {"finished", s.finished}};
    if (!s.tokens_blob.is_null())  // else a server has sampled it
      example.update({{"folder", s.folder}, {"tokens", s.tokens_blob}, {"logprobs", s.logprobs_blob}});
    return example;
  }

  StageStep end_round() {
    Json round = {{"groups", groups_}, {"groups_skipped", skipped_}, {"database", database_size()}};
    double sum = 0, n = 0;
    for (const Sample& s : rounds_.samples())
      if (s.reward) sum += *s.reward, n += 1;
    if (n > 0) round["mean_reward"] = sum / n;
    return rounds_.end(round) ? next_round() : finish();
  }

  std::size_t database_size() const {
    std::size_t programs = 0;
    for (const std::string& task : tasks_.train()) programs += database_.size(task);
    return programs;
  }

  StageStep finish() {
    std::uint64_t groups = 0, skipped = 0;
    for (const Json& r : rounds_.ended()) {
      groups += r.at("groups").get<std::uint64_t>();
      skipped += r.at("groups_skipped").get<std::uint64_t>();
    }
    return rounds_.finish(
        {{"prompt_groups", groups}, {"groups_skipped", skipped}, {"database", database_size()}});
  }

  const StageInputs inputs_;
  const workflow::ContrastiveSettings settings_;
  const method::RewardKind kind_;
  const method::AdvantageKind advantage_;
  const method::PromptForm form_;
  const TaskSet tasks_;
  const std::vector<Known> known_;
  Verifier verifier_;
  method::ExemplarDatabase database_;
  method::RewardSmoother smoother_;
  const Checkpoint reference_;  // the model of stage 2: of the KL term
  LearningRounds rounds_;
  std::optional<KnownHacks> hacks_;         // nothing where none is quoted
  std::uint64_t groups_ = 0, skipped_ = 0;  // of this round
};

}  // namespace

std::unique_ptr<Stage> make_contrastive(StageInputs inputs) {
  return std::make_unique<ContrastiveStage>(std::move(inputs));
}

}  // namespace warpsmith::stages

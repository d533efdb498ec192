// `self_supervised`, stage 2: rounds of sampling, testing, and training on what succeeded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "examples.h"
#include "kinds.h"
#include "learning_rounds.h"
#include "warpsmith/base/random.h"
#include "warpsmith/method/reward.h"

namespace warpsmith::stages {

namespace {

// Stage 1's examples of the newest `sft` stage upstream; without one, the successes upstream with stage 1's
// prompt.
std::vector<Json> replay_examples(const StageInputs& inputs, const TaskSet& tasks) {
  ExampleSettings settings;
  settings.from = inputs.upstream_order;
  settings.style = inputs.spec.prompt.style;
  settings.answer = inputs.spec.prompt.answer;
  settings.contrastive_share = 0;
  for (auto it = inputs.upstream_order.rbegin(); it != inputs.upstream_order.rend(); ++it)
    if (const auto& output = inputs.upstream.at(*it); output.contains("examples")) {
      settings = example_settings_from_json(output.at("examples"));
      break;
    }
  std::erase_if(settings.from, [&](const std::string& stage) { return !inputs.upstream.contains(stage); });
  return sft_examples(inputs, tasks, settings);
}

class SelfSupervisedStage final : public Stage {
 public:
  explicit SelfSupervisedStage(StageInputs inputs)
      : inputs_(std::move(inputs)),
        settings_(std::get<workflow::SelfSupervisedSettings>(inputs_.spec.settings)),
        tasks_(inputs_.spec.dataset, inputs_.tasks),
        verifier_(inputs_, known_candidates(inputs_, inputs_.upstream_order, Comparable::kProtocol)),
        replay_(workflow::has_own_model(inputs_.spec) ? replay_examples(inputs_, tasks_)
                                                      : std::vector<Json>()),
        rounds_(inputs_, tasks_, verifier_,
                {settings_.rounds, settings_.turns, settings_.ahead, [this](int) { return make_prompts(); }},
                first_checkpoint(inputs_)) {
    if (settings_.rounds < 1 || settings_.samples < 1 || tasks_.train().empty())
      throw Error(
          fmt::format("stage {}: needs at least one round, one sample and one train task", inputs_.spec.name),
          kExitUsage);
  }

  StageStep start() override { return next_round(); }

  StageStep on_job(const JobResult& result) override {
    if (result.job == "train") {
      rounds_.on_trained(result);
      return end_round();
    }
    if (auto step = rounds_.on_job(result)) return std::move(*step);
    return train();
  }

 private:
  StageStep next_round() {
    if (auto step = rounds_.begin()) return std::move(*step);
    return train();
  }

  std::vector<Prompt> make_prompts() const {
    const method::PromptForm form = form_of(inputs_.spec.prompt);
    std::vector<Prompt> prompts;
    for (const std::string& task : tasks_.train())
      for (Prompt& prompt : split_samples(task, settings_.samples)) {
        prompt.text = method::sft_prompt(tasks_.at(task), form);
        prompts.push_back(std::move(prompt));
      }
    return prompts;
  }

  // What is known of a success's speed; one that was too noisy to be scored stands behind those with a score.
  double speed(const Sample& s) const {
    const Measurement& m = verifier_.at(s.candidate).measurement;
    const auto outcome = method::outcome_of(m, settings_.reward_within);
    return outcome == method::Outcome::kValid ? m.speedup : 0;
  }

  // The round's correct samples in their order, of each task the fastest `fastest` (of distinct sources with
  // `distinct`, each once over all rounds).
  std::vector<const Sample*> chosen() {
    std::map<std::string, std::vector<const Sample*>> by_task;
    for (const Sample& s : rounds_.samples()) {
      if (!is_correct(verifier_.at(s.candidate).measurement.verdict)) continue;
      if (settings_.distinct && !learned_.insert(s.candidate).second) continue;
      by_task[s.task].push_back(&s);
    }
    std::set<const Sample*> kept;
    for (auto& [task, samples] : by_task) {
      std::stable_sort(samples.begin(), samples.end(),
                       [&](const Sample* a, const Sample* b) { return speed(*a) > speed(*b); });
      const auto wanted =
          static_cast<std::size_t>(std::ceil(settings_.fastest * static_cast<double>(samples.size()) - 1e-9));
      samples.resize(std::clamp<std::size_t>(wanted, 1, samples.size()));
      kept.insert(samples.begin(), samples.end());
    }
    std::vector<const Sample*> out;
    for (const Sample& s : rounds_.samples())
      if (kept.contains(&s)) out.push_back(&s);
    return out;
  }

  std::vector<Json> successes() {
    const method::PromptForm form = form_of(inputs_.spec.prompt);
    std::vector<Json> out;
    for (const Sample* sample : chosen()) {
      const Sample& s = *sample;
      const Known& known = verifier_.at(s.candidate);
      // Full answers hold an analysis beside the code: what was sampled is what is learned.
      std::string answer = form.style == method::PromptStyle::kFull
                               ? s.text
                               : method::completion_of(known.candidate.source(), form);
      out.push_back(make_example(s.id(), s.prompt, std::move(answer)));
    }
    return out;
  }

  // As many of stage 1's examples as make them `replay` of the whole; all of them where there is no success.
  std::vector<Json> replayed(std::size_t successes) const {
    if (settings_.replay <= 0 || replay_.empty()) return {};
    if (successes == 0 || settings_.replay >= 1) return replay_;
    const auto wanted = static_cast<std::size_t>(
        std::llround(static_cast<double>(successes) * settings_.replay / (1 - settings_.replay)));
    Random random(random_key({inputs_.spec.seed, name_key(inputs_.spec.name),
                              static_cast<std::uint64_t>(rounds_.number()), name_key("replay")}));
    std::vector<Json> out, left;
    while (out.size() < wanted) {
      if (left.empty()) left = replay_;  // more wanted than there are: each once more
      const std::size_t i = random.below(left.size());
      out.push_back(left[i]);
      // One pass takes each example once, so ids repeat only between passes, where they are told apart.
      if (const std::size_t pass = (out.size() - 1) / replay_.size(); pass > 0)
        out.back()["id"] = fmt::format("{}+{}", left[i]["id"].get<std::string>(), pass);
      std::swap(left[i], left.back());
      left.pop_back();
    }
    return out;
  }

  StageStep train() {
    if (!workflow::has_own_model(inputs_.spec)) return end_round();
    std::vector<Json> examples = settings_.replay >= 1 ? std::vector<Json>() : successes();
    successes_ = examples.size();
    const std::vector<Json> replay = replayed(successes_);
    replayed_ = replay.size();
    examples.insert(examples.end(), replay.begin(), replay.end());
    if (examples.empty() || settings_.steps < 1) return end_round();
    return rounds_.ask(train_request(inputs_.spec, {rounds_.number(), "rejection", rounds_.checkpoint(), "",
                                                    settings_.steps, std::move(examples)}));
  }

  StageStep end_round() {
    if (!workflow::has_own_model(inputs_.spec)) return rounds_.end(Json::object()) ? next_round() : finish();
    Json round = {{"examples", successes_}, {"replayed", replayed_}};
    if (successes_ == 0)
      round["note"] = replayed_ > 0
                          ? "no new success in this round: trained on stage 1's examples only"
                          : "no new success in this round and nothing to replay: the model is unchanged";
    return rounds_.end(round) ? next_round() : finish();
  }

  StageStep finish() {
    const std::vector<Json>& rounds = rounds_.ended();
    return rounds_.finish(
        {{"rounds_without_success",
          std::count_if(rounds.begin(), rounds.end(), [](const Json& r) { return r.contains("note"); })}});
  }

  const StageInputs inputs_;
  const workflow::SelfSupervisedSettings settings_;
  const TaskSet tasks_;
  Verifier verifier_;
  const std::vector<Json> replay_;
  LearningRounds rounds_;
  std::size_t successes_ = 0, replayed_ = 0;  // of this round
  std::set<std::string> learned_;
};

}  // namespace

std::unique_ptr<Stage> make_self_supervised(StageInputs inputs) {
  return std::make_unique<SelfSupervisedStage>(std::move(inputs));
}

}  // namespace warpsmith::stages

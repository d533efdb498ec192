// `self_supervised`, stage 2: rounds of sampling, testing, and training on what succeeded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "examples.h"
#include "jobs.h"
#include "kinds.h"
#include "samples.h"
#include "summary.h"
#include "verifier.h"
#include "warpsmith/base/random.h"

namespace warpsmith::stages {

namespace {

// Stage 1's examples of the newest `sft` stage upstream; without one, the successes upstream with stage 1's
// prompt.
std::vector<Json> replay_examples(const StageInputs& inputs, const TaskSet& tasks) {
  ExampleSettings settings;
  settings.from = inputs.upstream_order;
  settings.style = inputs.spec.prompt.style;
  settings.contrastive_share = 0;
  for (auto it = inputs.upstream_order.rbegin(); it != inputs.upstream_order.rend(); ++it)
    if (const auto& output = inputs.upstream.at(*it); output.contains("examples")) {
      settings = example_settings_from_json(output.at("examples"));
      break;
    }
  std::erase_if(settings.from, [&](const std::string& stage) { return !inputs.upstream.contains(stage); });
  return sft_examples(tasks, known_candidates(inputs, settings.from, Comparable::kDevice), settings);
}

class SelfSupervisedStage final : public Stage {
 public:
  explicit SelfSupervisedStage(StageInputs inputs)
      : inputs_(std::move(inputs)),
        settings_(std::get<workflow::SelfSupervisedSettings>(inputs_.spec.settings)),
        tasks_(inputs_.spec.dataset, inputs_.tasks),
        verifier_(inputs_.spec, known_candidates(inputs_, inputs_.upstream_order, Comparable::kProtocol)),
        replay_(replay_examples(inputs_, tasks_)),
        checkpoint_(require_checkpoint(inputs_)) {
    if (settings_.rounds < 1 || settings_.samples < 1 || tasks_.train().empty())
      throw Error(
          fmt::format("stage {}: needs at least one round, one sample and one train task", inputs_.spec.name),
          kExitUsage);
  }

  StageStep start() override { return next_round(); }

  StageStep on_job(const JobResult& result) override {
    if (finished_ || result.round != round_) unexpected(inputs_.spec, result);
    if (result.job == "generate") {
      Generated generated = read_generated(inputs_.spec, prompts_, result, verifier_);
      samples_ = std::move(generated.samples);
      lost_ = generated.lost;
      if (auto job = verifier_.begin(round_, generated.candidates)) return ask(std::move(*job), progress());
      return train();
    }
    if (result.job == "compile" || result.job == "measure") {
      if (auto job = verifier_.on_job(result)) return ask(std::move(*job), progress());
      return train();
    }
    if (result.job != "train") unexpected(inputs_.spec, result);
    Trained trained = read_trained(inputs_.spec, result);
    checkpoint_ = trained.checkpoint;
    digest_ = trained.digest;
    curve_ = std::move(trained.curve);
    return end_round();
  }

 private:
  StageStep next_round() {
    ++round_;
    prompts_.clear();
    samples_.clear();
    curve_.clear();
    const method::PromptStyle style = method::parse_prompt_style(inputs_.spec.prompt.style);
    for (const std::string& task : tasks_.train())
      for (Prompt& prompt : split_samples(task, settings_.samples)) {
        prompt.text = method::sft_prompt(tasks_.at(task), style);
        prompts_.push_back(std::move(prompt));
      }
    return ask(generate_request(inputs_.spec, round_, checkpoint_.path, prompts_), progress());
  }

  // Successes to learn from: with `distinct` each source once over all rounds, else every sample of this
  // round.
  std::vector<Json> successes() {
    const method::PromptStyle style = method::parse_prompt_style(inputs_.spec.prompt.style);
    std::vector<Json> out;
    for (const Sample& s : samples_) {
      const Known& known = verifier_.at(s.candidate);
      if (!is_correct(known.measurement.verdict)) continue;
      if (settings_.distinct && !learned_.insert(s.candidate).second) continue;
      // Full answers hold an analysis beside the code: what was sampled is what is learned.
      std::string answer = style == method::PromptStyle::kFull
                               ? s.text
                               : method::completion_of(known.candidate.source(), style);
      out.push_back(make_example(fmt::format("{}/{}", s.item, s.number), s.prompt, std::move(answer)));
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
                              static_cast<std::uint64_t>(round_), name_key("replay")}));
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
    std::vector<Json> examples = settings_.replay >= 1 ? std::vector<Json>() : successes();
    successes_ = examples.size();
    const std::vector<Json> replay = replayed(successes_);
    replayed_ = replay.size();
    examples.insert(examples.end(), replay.begin(), replay.end());
    if (examples.empty() || settings_.steps < 1) return end_round();
    return ask(train_request(inputs_.spec,
                             {round_, "rejection", checkpoint_, "", settings_.steps, std::move(examples)}),
               progress());
  }

  StageProgress progress() const {
    StageProgress p = {{"round", round_}, {"rounds", settings_.rounds}};
    if (!rounds_.empty())
      for (const char* key : {"valid_share", "distinct_share", "best", "median", "geomean", "loss", "note"})
        if (rounds_.back().contains(key)) p[key] = rounds_.back()[key];
    return p;
  }

  StageStep end_round() {
    Json round = figures(counted(samples_, verifier_));
    round["round"] = round_;
    round["lost_samples"] = lost_;
    round["examples"] = successes_;
    round["replayed"] = replayed_;
    round["checkpoint"] = checkpoint_.path;
    round["step"] = checkpoint_.step;
    if (!curve_.empty()) {
      round["loss"] = last_loss(curve_);
      round["curve_tail"] = curve_tail(curve_);
    }
    if (successes_ == 0)
      round["note"] = replayed_ > 0
                          ? "no new success in this round: trained on stage 1's examples only"
                          : "no new success in this round and nothing to replay: the model is unchanged";
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
    step.output["summary"] = figures_by_group(counted(all_, verifier_), tasks_);
    step.output["summary"]["rounds_without_success"] =
        std::count_if(rounds_.begin(), rounds_.end(), [](const Json& r) { return r.contains("note"); });
    step.output["summary"]["loss"] = rounds_.back().value("loss", Json());
    step.progress = progress();
    return step;
  }

  const StageInputs inputs_;
  const workflow::SelfSupervisedSettings settings_;
  const TaskSet tasks_;
  Verifier verifier_;
  const std::vector<Json> replay_;
  Checkpoint checkpoint_;
  std::string digest_;
  int round_ = 0;
  std::vector<Prompt> prompts_;
  std::vector<Sample> samples_, all_;
  std::uint64_t lost_ = 0;
  std::size_t successes_ = 0, replayed_ = 0;
  std::set<std::string> learned_;
  std::vector<Json> curve_;
  std::vector<Json> rounds_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Stage> make_self_supervised(StageInputs inputs) {
  return std::make_unique<SelfSupervisedStage>(std::move(inputs));
}

}  // namespace warpsmith::stages

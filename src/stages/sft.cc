// `sft`, stage 1: supervised fine-tuning on the successes of the train tasks.
#include <fmt/format.h>

#include "examples.h"
#include "jobs.h"
#include "kinds.h"
#include "summary.h"
#include "warpsmith/base/random.h"

namespace warpsmith::stages {

namespace {

class SftStage final : public Stage {
 public:
  explicit SftStage(StageInputs inputs)
      : inputs_(std::move(inputs)),
        settings_(std::get<workflow::SftSettings>(inputs_.spec.settings)),
        tasks_(inputs_.spec.dataset, inputs_.tasks),
        init_(newest_checkpoint(inputs_)) {
    const workflow::StageSpec& spec = inputs_.spec;
    if (settings_.steps < 0)
      throw Error(fmt::format("stage {}: `steps` must not be negative", spec.name), kExitUsage);
    example_settings_ = {inputs_.upstream_order,
                         spec.prompt.style,
                         spec.prompt.answer,
                         spec.prompt.exemplars,
                         settings_.contrastive_share,
                         settings_.successes_only,
                         random_key({spec.seed, name_key(spec.name)})};
    examples_ = sft_examples(inputs_, tasks_, example_settings_);
    if (examples_.empty())
      throw Error(fmt::format("stage {}: the stages that it needs hold no successful program of a train task",
                              spec.name),
                  kExitFailed);
  }

  StageStep start() override {
    JobRequest job = train_request(inputs_.spec, {0, "sft", init_, "", settings_.steps, examples_});
    return ask(std::move(job),
               {{"round", 0}, {"rounds", 1}, {"examples", examples_.size()}, {"steps", settings_.steps}});
  }

  StageStep on_job(const JobResult& result) override {
    if (finished_ || result.round != 0 || result.job != "train") unexpected(inputs_.spec, result);
    finished_ = true;
    const Trained trained = read_trained(inputs_.spec, result);
    StageStep step;
    step.finished = true;
    step.output = begin_output(inputs_.spec);
    step.output["checkpoint"] = trained.checkpoint.path;
    step.output["checkpoint_digest"] = trained.digest;
    step.output["step"] = trained.checkpoint.step;
    step.output["examples"] = to_json(example_settings_);
    std::uint64_t contrastive = 0;
    for (const Json& e : examples_)
      contrastive += e["id"].get<std::string>().starts_with("contrastive/") ? 1 : 0;
    step.output["summary"] = {{"examples", examples_.size()},
                              {"contrastive_examples", contrastive},
                              {"steps", trained.curve.size()},
                              {"loss", last_loss(trained.curve)},
                              {"curve_tail", curve_tail(trained.curve)}};
    step.progress = {{"round", 0}, {"rounds", 1}, {"loss", last_loss(trained.curve)}};
    return step;
  }

 private:
  const StageInputs inputs_;
  const workflow::SftSettings settings_;
  const TaskSet tasks_;
  const std::optional<Checkpoint> init_;
  ExampleSettings example_settings_;
  std::vector<Json> examples_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Stage> make_sft(StageInputs inputs) { return std::make_unique<SftStage>(std::move(inputs)); }

}  // namespace warpsmith::stages

#include "stage_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/workflow/devices.h"

namespace warpsmith::workflow {

namespace {

class StageChecks {
 public:
  StageChecks(const std::vector<StageSpec>& stages, const fs::path& file, Diagnostics& mistakes,
              Diagnostics& idle)
      : stages_(stages), file_(file), mistakes_(mistakes), idle_(idle) {}

  void check(const StageSpec& stage) {
    check_model_memory(stage);
    check_states(stage);
    check_gpus(stage);
    check_lora(stage);
    check_rewards(stage);
  }

 private:
  Diagnostic of(const StageSpec& stage, const std::string& what, std::string hint) const {
    return {file_.string(), stage.line, 1, fmt::format("stage `{}`: {}", stage.base_name, what),
            std::move(hint)};
  }
  void wrong(const StageSpec& stage, const std::string& what, std::string hint) {
    mistakes_.push_back(of(stage, what, std::move(hint)));
  }

  void check_gpus(const StageSpec& stage) {
    if (stage.device == "cpu" && runs_on_gpus_alone(stage))
      wrong(stage,
            fmt::format("programs of tier `{}` run on GPUs alone, and `device` is cpu", stage.prompt.answer),
            "device: auto, or a GPU type; or prompt: {answer: plan}");
    if (stage.device == "cpu" && stage.measure.shards_a_gpu > 1)
      idle_.push_back(of(stage,
                         fmt::format("`shards_a_gpu` is {}, and `device` is cpu", stage.measure.shards_a_gpu),
                         "leave it out, or device: auto"));
    for (const StageJob& job : stage_jobs(stage))
      if (job.resources->gpus == 0 && !job.resources->gpu_type.empty() && !runs_program(stage.kind) &&
          (job.name == "train" || job.name == "generate"))
        idle_.push_back(of(
            stage,
            fmt::format("its {} jobs have a GPU type, `{}`, and no GPU", job.name, job.resources->gpu_type),
            fmt::format("{}: {{gpus: 1}}, or leave `gpu_type` out", job.name)));
  }

  void check_rewards(const StageSpec& stage) {
    const auto* contrastive = std::get_if<ContrastiveSettings>(&stage.settings);
    if (contrastive != nullptr && contrastive->library_penalty > 0 && stage.prompt.answer == "plan")
      wrong(stage, "`library_penalty` is of kernels of libraries, and programs of tier `plan` launch none",
            "prompt: {answer: extension}; or leave it out");
  }

  void check_lora(const StageSpec& stage) {
    if (stage.lora.rank <= 0) return;
    if (trains(stage) && stage.model.pretrained && !stage.model.pretrained->takes_lora)
      wrong(stage,
            fmt::format("`lora` is not supported for models of family {}", stage.model.pretrained->family),
            "leave it out");
    if (stage.kind == "sft" && stage.model.from.empty() && !goes_on(stage))
      wrong(stage, "`lora` adds to weights that somebody trained, and this model's are random",
            "model: {from: FOLDER}, or leave `lora` out");
  }

  // Whether it begins with the model of a stage that it needs.
  bool goes_on(const StageSpec& stage) const {
    return std::any_of(stages_.begin(), stages_.end(), [&](const StageSpec& other) {
      return std::find(stage.needs.begin(), stage.needs.end(), other.name) != stage.needs.end() &&
             trains(other);
    });
  }

  void check_states(const StageSpec& stage) {
    if (!trains(stage)) return;
    const OptimizerSettings& o = stage.optimizer;
    if (o.states == "nvme" && o.states_folder.empty())
      wrong(stage, "`states: nvme` wants `states_folder`",
            "optimizer: {states: nvme, states_folder: /scratch}");
    if (!o.states_folder.empty() && !fs::path(o.states_folder).is_absolute())
      wrong(stage, fmt::format("`states_folder`: `{}` is no absolute path", o.states_folder), "/scratch");
    if (!o.states_folder.empty() && (o.states == "gpu" || o.states == "host"))
      wrong(stage, fmt::format("`states: {}` writes no files", o.states), "leave `states_folder` out");
    if (o.states == "gpu" && stage.train.gpus == 0)
      wrong(stage, "`states: gpu`, and its train jobs have no GPU", "resources: {train: {gpus: 1}}");
    if (o.states == "host" && stage.train.gpus == 0)
      wrong(stage, "`states: host`, and its train jobs have no GPU, so they lie there anyway",
            "leave it out");
  }

  // What is certain of the memory of a folder's model: its weights, and what training keeps for each.
  void check_model_memory(const StageSpec& stage) {
    if (!stage.model.pretrained || !has_own_model(stage)) return;
    const auto parameters = static_cast<std::uint64_t>(stage.model.pretrained->parameters);
    const auto check = [&](const char* job, std::uint64_t bytes_each, const char* what) {
      for (const StageJob& one : stage_jobs(stage)) {
        const std::uint64_t limit = one.resources->memory_bytes, needed = parameters * bytes_each;
        if (one.name != job || limit == 0 || limit >= needed) continue;
        wrong(stage,
              fmt::format("its {} jobs have {}, and {} for {} parameters takes {}", job, format_size(limit),
                          what, parameters, format_size(needed)),
              fmt::format("resources: {{{}: {{memory: …}}}}", job));
      }
    };
    const auto* contrastive = std::get_if<ContrastiveSettings>(&stage.settings);
    const bool two = contrastive != nullptr && contrastive->kl > 0;
    // On a GPU the host holds the weights alone.
    if (stage.lora.rank > 0 || stage.train.gpus > 0)
      check("train", 4, "weights in float32");
    else
      check("train", two ? 20 : 16,
            two ? "weights, gradients, two moments and the reference's weights in float32"
                : "weights, gradients and two moments in float32");
    if (!stage.policy) check("generate", 4, "weights in float32");
  }

  const std::vector<StageSpec>& stages_;
  const fs::path& file_;
  Diagnostics &mistakes_, &idle_;
};

}  // namespace

void check_stages(const std::vector<StageSpec>& stages, const fs::path& file, Diagnostics& mistakes,
                  Diagnostics& idle) {
  StageChecks checks(stages, file, mistakes, idle);
  for (const StageSpec& stage : stages) checks.check(stage);
}

}  // namespace warpsmith::workflow

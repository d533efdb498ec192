#include "warpsmith/controller/model_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpsmith/base/text.h"
#include "warpsmith/stages/stage.h"
#include "warpsmith/workflow/devices.h"

namespace warpsmith::controller {

namespace {

bool uses_gpu(const workflow::StageSpec& stage, std::string_view job) {
  const Resources* const resources = workflow::resources_of_job(stage, job);
  return resources != nullptr && resources->gpus > 0;
}

std::string of_gpu(std::uint64_t bytes) { return bytes > 0 ? ", of " + format_size(bytes) : ""; }

// The smallest of the GPUs that a job may get, in bytes; 0: not known.
std::uint64_t least_memory(const std::vector<process::Gpu>& gpus, const Resources& resources) {
  std::uint64_t least = 0;
  for (const process::Gpu& gpu : gpus) {
    if (!resources.gpu_type.empty() && process::gpu_type_of(gpu.name) != resources.gpu_type) continue;
    if (gpu.memory_bytes > 0) least = least == 0 ? gpu.memory_bytes : std::min(least, gpu.memory_bytes);
  }
  return least;
}

}  // namespace

ModelMemory model_memory(const workflow::StageSpec& stage) {
  return model_memory(stage, stage.optimizer.states == "host" || stage.optimizer.states == "nvme");
}

ModelMemory model_memory(const workflow::StageSpec& stage, bool elsewhere) {
  ModelMemory memory;
  const bool trains = uses_gpu(stage, "train"), samples = uses_gpu(stage, "generate");
  if (workflow::runs_program(stage.kind) || (!trains && !samples)) return memory;
  Json json = stages::decoder_json(stage);
  if (stage.lora.rank > 0) json["lora"] = stages::lora_json(stage.lora);
  const model::DecoderSettings settings = model::decoder_settings_from_json(json);
  if (trains) {
    const workflow::OptimizerSettings& o = stage.optimizer;
    const auto* contrastive = std::get_if<workflow::ContrastiveSettings>(&stage.settings);
    const int ranks = stage.train.gpus;
    const std::int64_t share = (o.batch_tokens + ranks - 1) / ranks;
    memory.training = model::training_memory(
        settings,
        {.tokens = o.micro_batch_tokens > 0 ? std::min<std::int64_t>(o.micro_batch_tokens, share) : share,
         .ranks = ranks,
         .bfloat16 = o.type != "float32",
         .moments_in_bytes = o.moments == "int8",
         .states_elsewhere = elsewhere,
         .recompute = o.recompute,
         .reference = contrastive != nullptr && contrastive->kl > 0});
  }
  if (samples)
    memory.sampling = model::sampling_memory(settings, {.samples = stage.sample.wave,
                                                        .places = stage.model.context,
                                                        .bfloat16 = stage.sample.type != "float32"});
  return memory;
}

std::string does_not_fit(const workflow::StageSpec& stage, const std::vector<process::Gpu>& gpus) {
  const ModelMemory memory = model_memory(stage, stage.optimizer.states != "gpu");
  const std::uint64_t train = least_memory(gpus, stage.train), generate = least_memory(gpus, stage.generate);
  if (memory.training && train > 0 && memory.training->fixed() > train) {
    model::GpuMemory least = *memory.training;
    least.activations = 0;
    return fmt::format(
        "its model does not fit on a GPU of this machine: training takes {}, and there are {}. {}`lora`, "
        "`moments: int8`, or `train: {{gpus: N}}`, whose processes share the optimiser's states, takes less",
        model::to_string(least), format_size(train),
        stage.optimizer.states == "gpu" ? "`states: host`, " : "");
  }
  if (memory.sampling && generate > 0 && memory.sampling->weights > generate)
    return fmt::format(
        "its model does not fit on a GPU of this machine: its weights take {}, and there are {}",
        format_size(memory.sampling->weights), format_size(generate));
  return "";
}

std::vector<std::string> memory_lines(const workflow::StageSpec& stage,
                                      const std::vector<process::Gpu>& gpus) {
  std::vector<std::string> lines;
  const ModelMemory memory = model_memory(stage);
  const auto say_training = [&](const std::optional<model::GpuMemory>& training) {
    if (!training) return;
    const std::uint64_t has = least_memory(gpus, stage.train);
    lines.push_back(fmt::format("training takes some {}{}", model::to_string(*training), of_gpu(has)));
    if (has == 0 || training->all() <= has) return;
    const bool may_move = stage.optimizer.states == "auto";
    const model::GpuMemory least = may_move ? *model_memory(stage, true).training : *training;
    if (least.all() <= has)
      lines.push_back("so a part of the optimiser's states lies on the host, and each step copies it");
    else if (least.fixed() <= has)
      lines.push_back("that is too much: lower `micro_batch_tokens`, or set `recompute: true`");
  };
  say_training(memory.training);
  if (const auto& sampling = memory.sampling) {
    const std::uint64_t has = least_memory(gpus, stage.generate);
    lines.push_back(fmt::format("sampling takes some {}{}", model::to_string(*sampling), of_gpu(has)));
    if (has > 0 && sampling->all() > has && sampling->weights <= has)
      lines.push_back("that is too much where prompts are long: lower `wave`");
  }
  return lines;
}

}  // namespace warpsmith::controller

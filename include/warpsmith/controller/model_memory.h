// What a stage's model takes of a GPU: for `plan`, and for who starts a stage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warpsmith/model/gpu_memory.h"
#include "warpsmith/process/gpus.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::controller {

// Nothing for what is done on the CPU. Prompts are taken to fill the model's context.
struct ModelMemory {
  std::optional<model::GpuMemory> training, sampling;
};
ModelMemory model_memory(const workflow::StageSpec& stage);
// `elsewhere`: whether the optimiser's states lie on the host or in files, whatever the stage says.
ModelMemory model_memory(const workflow::StageSpec& stage, bool elsewhere);

// Why the stage's model does not fit on the smallest of `gpus` that its jobs may get, whatever is computed at
// a time; empty where it does, or where that is not known.
std::string does_not_fit(const workflow::StageSpec& stage, const std::vector<process::Gpu>& gpus);

// Lines for `plan`, without their indent.
std::vector<std::string> memory_lines(const workflow::StageSpec& stage,
                                      const std::vector<process::Gpu>& gpus);

}  // namespace warpsmith::controller

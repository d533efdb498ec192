// What a `train` job is given: its settings, the examples, the models that it starts from. See train.cc for
// the form of each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/learn/trainer.h"
#include "warpsmith/records/shard.h"

namespace warpsmith {

struct TrainInputs {
  learn::TrainerSettings settings;
  std::vector<learn::Example> examples;
  std::optional<model::Checkpoint> init;        // with its optimiser's state
  std::optional<model::Checkpoint> reference;   // grpo: of the KL term
  std::optional<model::Checkpoint> sampled_by;  // grpo: what drew the samples, where it is not init
  std::vector<std::string> parents;             // digests of init and reference
  std::int64_t first = 0;                       // steps that init has behind it
};

// Throws Error with kExitUsage where the job file makes no sense.
TrainInputs read_train_inputs(const ShardSession& shard);

// The number in an item's id.
std::int64_t step_of(const Item& item);

// Where there is no init: the model of a Hugging Face folder or of its shape; else random weights, and a
// tokenizer trained on the examples.
model::Checkpoint first_model(const Json& params, const std::vector<learn::Example>& examples,
                              std::uint64_t seed);

// The model with the adapters that params.lora asks for: fresh ones, those that it has, or, where none are
// asked for, merged into its matrices. Throws Error (exit code 2) where it has others.
model::Checkpoint with_lora(model::Checkpoint start, const Json& params, std::uint64_t seed);

}  // namespace warpsmith

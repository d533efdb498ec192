// Trains a decoder on examples, one optimiser step a call. A step's batch is a function of the settings, the
// examples and the step's number, so training that is resumed from a checkpoint goes on exactly as if it had
// never stopped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/learn/losses.h"
#include "warpsmith/learn/optimizer.h"
#include "warpsmith/model/checkpoint.h"

namespace warpsmith::learn {

enum class Mode { kSft, kRejection, kGrpo };
Mode parse_mode(std::string_view name);  // "sft", "rejection", "grpo"; throws Error (exit code 2)

struct Example {
  std::string id, prompt, completion;
  double weight = 1;
  // grpo only:
  std::string group;
  double advantage = 0;
  std::vector<model::Token> tokens;      // of the completion, as sampled
  std::vector<float> log_probabilities;  // of each, as the sampler reported them
};

struct TrainerSettings {
  Mode mode = Mode::kSft;
  OptimizerSettings optimizer;
  GrpoSettings grpo;
  std::int64_t epochs = 1;  // grpo: passes over the groups, spread evenly over the steps
  std::int64_t steps = 1;   // of this job: what the schedule of the learning rate runs over
  std::uint64_t seed = 0;
};

struct StepRecord {
  double loss = 0, learning_rate = 0, gradient_norm = 0, seconds = 0;
  std::int64_t tokens = 0;                        // prompt and completion tokens of the batch's examples
  double kl = 0, clip_share = 0, ratio_mean = 0;  // grpo only: means over samples of means over tokens
};

// Batches of example numbers, one a step.
//  - sft, rejection: the examples in a new random order each pass, cut into batches of at most `batch_tokens`
//  (at least
//    one example each), however many passes the steps make;
//  - grpo: whole groups, `epochs` passes in random order, cut into `steps` runs of as equal a number of
//  groups as can be;
//    where there are more steps than groups, single samples in that order instead. Throws Error (exit code 2)
//    where there are more steps than samples.
std::vector<std::vector<std::size_t>> plan_batches(const TrainerSettings& settings,
                                                   const std::vector<std::int64_t>& tokens,
                                                   const std::vector<std::string>& groups);

class Trainer {
 public:
  // `reference`: the policy that GRPO's KL holds to; may be null where kl is 0. Examples longer than the
  // context are left out and counted; throws Error (exit code 2) where none is left or a grpo example lacks
  // its tokens.
  Trainer(const TrainerSettings& settings, model::Decoder decoder, model::Tokenizer tokenizer,
          std::optional<model::OptimizerState> optimizer, const model::Decoder* reference,
          std::vector<Example> examples);
  ~Trainer();
  Trainer(Trainer&&) noexcept;

  std::int64_t done() const;        // steps of this job so far
  void skip_to(std::int64_t done);  // after resuming: the next step's index
  StepRecord step();                // the next one
  std::size_t left_out() const;
  const model::Decoder& decoder() const;
  const model::Tokenizer& tokenizer() const;
  const model::OptimizerState& optimizer_state() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// For the process: threads of ATen, algorithms that repeat bit for bit, and memory that is kept for the next
// step.
void prepare_process(int threads);

}  // namespace warpsmith::learn

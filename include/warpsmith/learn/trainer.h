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
  // Of the completion, as sampled, and as the sampler reported them; both empty: a server has sampled, the
  // tokens are those of `completion`, and the old log-probabilities are computed by the trainer.
  std::vector<model::Token> tokens;
  std::vector<float> log_probabilities;
  bool finished = true;  // no limit cut it off
  // Any mode: prompts that serve in turn where the one before is too long.
  std::vector<std::string> shorter = {};
};

struct TrainerSettings {
  Mode mode = Mode::kSft;
  OptimizerSettings optimizer;
  GrpoSettings grpo;
  std::int64_t epochs = 1;  // grpo: passes over the groups, spread evenly over the steps
  std::int64_t steps = 1;   // of this job: what the schedule of the learning rate runs over
  std::uint64_t seed = 0;
  // Where the decoder is trained and in what type: weights and gradients have it, the master weights and
  // moments are float32.
  at::TensorOptions placement = at::kFloat;
  // At most so many tokens are computed at a time (an example at least); their gradients add up. 0: a whole
  // step at a time, in grpo a group.
  std::int64_t micro_batch_tokens = 0;
  bool recompute = false;  // Decoder::recompute()
  // Ranks that train together: each computes its share of every step's tokens. Null: this process alone. Each
  // makes the same calls in the same order, and gets the same records.
  model::Collective* ranks = nullptr;
};

struct StepRecord {
  double loss = 0, learning_rate = 0, gradient_norm = 0, seconds = 0;
  std::int64_t tokens = 0;  // prompt and completion tokens of the batch's examples
  // grpo only: means over samples of means over tokens, and groups whose samples all have the advantage zero.
  double kl = 0, clip_share = 0, ratio_mean = 0, entropy = 0;
  std::int64_t groups = 0, groups_without_spread = 0, truncated = 0;  // truncated: samples
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
  // `decoder`, `reference`: on the CPU in float32, wherever training is. `reference`: the policy that GRPO's
  // KL holds to; may be null where kl is 0; has to live as long as the trainer. Examples longer than the
  // context are left out and counted; throws Error (exit code 2) where none is left or a grpo example lacks
  // its tokens.
  // `sampled_by`: grpo, the policy that drew the samples; null: `decoder`. On a GPU or in bfloat16 the old
  // log-probabilities of the ratios are computed by it here, since the sampler's differ by rounding; and
  // wherever training is, where examples lack theirs.
  Trainer(const TrainerSettings& settings, model::Decoder decoder, model::Tokenizer tokenizer,
          std::optional<model::OptimizerState> optimizer, const model::Decoder* reference,
          std::vector<Example> examples, const model::Decoder* sampled_by = nullptr);
  ~Trainer();
  Trainer(Trainer&&) noexcept;

  std::int64_t done() const;        // steps of this job so far
  void skip_to(std::int64_t done);  // after resuming: the next step's index
  StepRecord step();                // the next one
  std::size_t left_out() const;
  // Exemplars of the others that were left out, so that they fit: see Example::shorter.
  std::size_t exemplars_left_out() const;
  // As trained so far, on the CPU in float32; of several ranks all must ask, and rank 0 gets it.
  const model::Decoder& decoder() const;
  model::OptimizerState optimizer_state() const;
  const model::Tokenizer& tokenizer() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// For the process: threads of ATen, algorithms that repeat bit for bit, and memory that is kept for the next
// step. `gpu`: it computes there; those algorithms are slower then, and only used where `deterministic`. Who
// samples does without: its sums are formed in one order anyway.
void prepare_process(int threads, bool gpu = false, bool deterministic = true);

}  // namespace warpsmith::learn

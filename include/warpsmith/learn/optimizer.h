// AdamW with decoupled weight decay, clipping by the global norm, and the schedule of its learning rate.
#pragma once

#include <cstdint>

#include "warpsmith/base/json.h"
#include "warpsmith/model/checkpoint.h"
#include "warpsmith/model/fused.h"

namespace warpsmith::learn {

// Names as in a workflow file's `optimizer:`.
struct OptimizerSettings {
  double learning_rate = 4e-3;
  double final_rate = 0.1;         // share of learning_rate at the end of the cosine
  std::int64_t warmup_steps = 50;  // at most a tenth of the job's steps
  double weight_decay = 0.01;      // of matrices; norms and biases have none
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double clip_norm = 1.0;  // 0: off
  std::int64_t batch_tokens = 1500;
  std::int64_t checkpoint_every = 200;
  std::int64_t keep_last = 2;
  bool keep_best = true;
};
// Missing keys keep their defaults, unknown ones are ignored; throws Error (exit code 2) for values that make
// no sense.
OptimizerSettings optimizer_settings_from_json(const Json& json);

// Rate of step `index` (from 0) of `steps`: linear warm-up, then a cosine down to final_rate.
double learning_rate(const OptimizerSettings& settings, std::int64_t index, std::int64_t steps);

// Works on what a decoder trains (Decoder::trained_flat()). Where that is no float32, a float32 copy of it,
// the master, gets the updates and the decoder their rounded values.
class AdamW {
 public:
  // `weights`: what the decoder trains, in float32, on any device. Fresh moments, or `state`'s.
  AdamW(const OptimizerSettings& settings, const model::Decoder& decoder, const at::Tensor& weights,
        std::optional<model::OptimizerState> state);
  // One update by decoder.flat_gradient(); returns its norm before clipping. Throws Error where that is not
  // finite.
  double step(model::Decoder& decoder, double rate);
  const model::OptimizerState& state() const { return state_; }
  // float32, on the decoder's device.
  const at::Tensor& master() const { return master_; }

 private:
  void step_by_loops(const at::Tensor& gradient, double factor, double rate);
  void step_by_operators(model::Decoder& decoder, double factor, double rate);
  void step_fused(const model::Fused& fused, model::Decoder& decoder, double factor, double rate);

  OptimizerSettings settings_;
  model::OptimizerState state_;
  at::Tensor master_;  // the decoder's own weights where those are float32
  at::Tensor decay_;   // for the loops: weight decay of each element; fused: whether each 16 elements decay
};

}  // namespace warpsmith::learn

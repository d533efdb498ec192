// AdamW with decoupled weight decay, clipping by the global norm, and the schedule of its learning rate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "warpsmith/base/json.h"
#include "warpsmith/learn/states.h"
#include "warpsmith/model/checkpoint.h"
#include "warpsmith/model/collective.h"
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
  bool deterministic = true;        // on a GPU: sums in a fixed order (prepare_process())
  std::string moments = "float32";  // or "int8": a byte each (moments.h)
  // Where master weights and moments lie: "gpu", "host", "nvme" (files in states_folder), or "auto": in the
  // GPU's memory as far as there is room, then the host's, then files where a folder is named.
  std::string states = "auto";
  std::string states_folder;
};
// Missing keys keep their defaults, unknown ones are ignored; throws Error (exit code 2) for values that make
// no sense.
OptimizerSettings optimizer_settings_from_json(const Json& json);

// Rate of step `index` (from 0) of `steps`: linear warm-up, then a cosine down to final_rate.
double learning_rate(const OptimizerSettings& settings, std::int64_t index, std::int64_t steps);

// Where the states of n elements lie that a GPU updates, with `room` bytes left there (nothing: as much as
// they take) and `host` bytes of the host's memory. Throws Error where `auto` and `host` find no room.
StatesPlan plan_states(const OptimizerSettings& settings, std::int64_t n, bool with_master,
                       std::optional<std::uint64_t> room, std::uint64_t host);

// Works on what a decoder trains (Decoder::trained_flat()). Where that is no float32, a float32 copy of it,
// the master, gets the updates and the decoder their rounded values. Of several ranks each holds master and
// moments of its own part alone, updates that, and gets the others' weights from them.
class AdamW {
 public:
  // `weights`: what the decoder trains, in float32, on any device. Fresh moments, or `state`'s.
  // `state`: of all ranks. `ranks`: null where this process trains alone; else it has to live as long.
  // `room`: bytes of a GPU that are left for states; nothing: all that they take.
  AdamW(const OptimizerSettings& settings, const model::Decoder& decoder, const at::Tensor& weights,
        std::optional<model::OptimizerState> state, model::Collective* ranks = nullptr,
        std::optional<std::uint64_t> room = std::nullopt);
  // One update by the sum of all ranks' decoder.flat_gradient(); returns its norm before clipping. Throws
  // Error where that is not finite.
  double step(model::Decoder& decoder, double rate);
  // The whole state and master, on the CPU in float32. Of several ranks all must ask; rank 0 gets them, the
  // others what is not said.
  model::OptimizerState state() const;
  void copy_master(const at::Tensor& to) const;
  // Of this rank's master and moments, where those are not the weights themselves.
  States::Bytes bytes() const { return states_->bytes(); }

 private:
  // A run of the part's elements, and by what gradients are multiplied.
  struct Update : States::Run {
    double factor, rate;
  };
  void step_by_loops(model::Decoder& decoder, const Update& update);
  void step_by_operators(model::Decoder& decoder, const Update& update);
  void step_fused(const model::Fused& fused, model::Decoder& decoder, const Update& update);
  void copy_all_ranks(States::Which which, const at::Tensor& to) const;  // rank 0's `to`, on any device

  OptimizerSettings settings_;
  model::Collective* ranks_;
  c10::Device device_ = at::kCPU;
  std::int64_t all_ = 0;          // elements
  model::Part part_;              // of them, this rank's
  std::optional<States> states_;  // of the part, as all below
  std::int64_t steps_ = 0;
  at::Tensor decay_;  // for the loops: weight decay of each element; fused: whether each 16 elements decay
};

}  // namespace warpsmith::learn

// What training and sampling take of a GPU's memory, from a model's shape: before anything is started.
//
// Weights, gradients and the optimiser's states are exact. Activations are what the fused operations keep for
// the backward pass (operators.cc, head.cc); elsewhere it is up to twice as much. CUDA's context, libraries
// and what torch's allocator rounds up come on top, some 2 GiB.
#pragma once

#include <cstdint>
#include <string>

#include "warpsmith/model/settings.h"

namespace warpsmith::model {

// Logits that the head forms at a time on a GPU, at least a row.
inline constexpr std::int64_t kLogitsAtATime = std::int64_t{1} << 28;

// Elements of an optimiser's states that are copied to a GPU at a time where they lie elsewhere, and such
// pieces that are there at once.
inline constexpr std::int64_t kStatesPiece = std::int64_t{1} << 26, kStatesPieces = 3;
// Bytes of an element's states: `with_master`: a float32 copy of its weight; `in_bytes`: moments as bytes,
// with a scale for each 256.
double state_bytes(bool with_master, bool in_bytes);

// Bytes on one GPU.
struct GpuMemory {
  std::uint64_t weights = 0;    // the reference's of GRPO included
  std::uint64_t gradients = 0;  // as wide as weights
  std::uint64_t optimizer = 0;  // master weights and moments in float32: this rank's part of what lies there
  std::uint64_t activations = 0;  // of the tokens that are computed at a time, logits included
  std::uint64_t cache = 0;        // keys and values of the samples drawn at a time
  // What does not hang on how much is computed at a time.
  std::uint64_t fixed() const { return weights + gradients + optimizer; }
  std::uint64_t all() const { return fixed() + activations + cache; }
};
// "14.2 GiB: weights 0.3, gradients 0.3, optimiser 1.5, activations 12.1"
std::string to_string(const GpuMemory& memory);

struct TrainedOnGpu {
  std::int64_t tokens = 0;  // at a time
  int ranks = 1;            // that share the optimiser's states
  bool bfloat16 = true;     // of weights and gradients; false: float32
  bool moments_in_bytes = false;
  bool states_elsewhere = false;  // the optimiser's lie on the host or in files, but for pieces on their way
  bool recompute = false;
  bool reference = false;  // a second copy of the weights
};
GpuMemory training_memory(const DecoderSettings& settings, const TrainedOnGpu& how);

// What is left for an optimiser's states of `free` bytes, beside what is computed at a time, libraries, and
// what torch's allocator rounds up.
std::uint64_t room_for_states(std::uint64_t free, const GpuMemory& computed);

struct SampledOnGpu {
  std::int64_t samples = 0, places = 0;  // at a time; of each: prompt and completion
  bool bfloat16 = true;
};
GpuMemory sampling_memory(const DecoderSettings& settings, const SampledOnGpu& how);

}  // namespace warpsmith::model

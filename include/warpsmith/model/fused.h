// Fused operations on a GPU in bfloat16, and its work recorded once and repeated (a CUDA graph). Torch's
// operators say the same with two to ten times the traffic to memory; they serve wherever these do not.
//
// All tensors lie on the GPU and are contiguous bfloat16 rows that begin at multiples of 16 bytes, where
// nothing else is said. Sums are formed in float32. Errors of CUDA are thrown as Error.
#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>

#include "warpsmith/model/collective.h"

namespace warpsmith::model {

// A step of the sampler is some hundred short kernels, whose launches cost more than their work.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
  // Runs `step` once without doing its work: what it launches is kept. Its tensors must lie where they lay.
  virtual void record(const std::function<void()>& step) = 0;
  // Does that work, once.
  virtual void replay() = 0;
};

// Heads of tokens, row strides apart: [tokens, heads, head_dim], the last dimension contiguous.
struct TurnedHeads {
  at::Tensor queries, keys, values;
};

// The segments of a packed batch, as attend_packed() wants them: `longest` and the number of places are
// powers of two, and places behind the last segment have length 0.
struct Ragged {
  at::Tensor lengths;         // [places] int32
  at::Tensor qkv, out, sums;  // [places + 1] int64: where each begins, in elements of the tensor's rows
  std::int64_t longest = 0;
};

// What sizes of Ragged are rounded up to: n or more.
inline std::int64_t power_of_two(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

struct AdamRates {
  double rate, beta1, beta2, epsilon, decay;
  double factor;       // of gradients
  std::int64_t steps;  // this one included
};

class Fused {
 public:
  virtual ~Fused() = default;
  // Whether the GPU has what the fused operations want: compute capability 8.0.
  virtual bool is_new_enough() const = 0;
  // NCCL: the first rank makes the id, and all connect with it.
  virtual void make_nccl_id(unsigned char (&id)[128]) const = 0;
  virtual std::unique_ptr<Collective> make_collective(const unsigned char (&id)[128], int rank,
                                                      int size) const = 0;
  virtual std::unique_ptr<StepGraph> make_step_graph() const = 0;

  // sum = x + y; normed = weight * sum / rms(sum); scale: [rows] float32, 1 / rms(sum). y undefined: sum is x
  // and not written; scale undefined: not written.
  virtual void add_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight, double epsilon,
                        const at::Tensor& sum, const at::Tensor& normed, const at::Tensor& scale) const = 0;
  // dx = dsum + the gradient by way of normed; dsum may be undefined. Returns the weight's, bfloat16.
  virtual at::Tensor norm_backward(const at::Tensor& sum, const at::Tensor& scale, const at::Tensor& weight,
                                   const at::Tensor& dnormed, const at::Tensor& dsum,
                                   const at::Tensor& dx) const = 0;

  // gate_up: [rows, 2 * hidden].
  virtual void swiglu(const at::Tensor& gate_up, const at::Tensor& out) const = 0;
  virtual void swiglu_backward(const at::Tensor& gate_up, const at::Tensor& dout,
                               const at::Tensor& dgate_up) const = 0;

  // Turns queries and keys by the angles of their positions (sign -1: back), which may be done in place.
  // places defined: rows of to.keys and to.values that they go to. positions, places: [tokens] int64.
  virtual void turn(const TurnedHeads& from, const TurnedHeads& to, const at::Tensor& positions,
                    const at::Tensor& places, const at::Tensor& cosine, const at::Tensor& sine,
                    int sign) const = 0;

  // out = log softmax(logits)[targets] and logsums = log sum exp(logits): [rows] float32. gradients defined:
  // logits become the gradient of sum(gradients * out).
  virtual void log_probabilities(const at::Tensor& logits, const at::Tensor& targets,
                                 const at::Tensor& gradients, const at::Tensor& out,
                                 const at::Tensor& logsums) const = 0;
  virtual void log_probabilities_backward(const at::Tensor& logits, const at::Tensor& targets,
                                          const at::Tensor& gradients, const at::Tensor& logsums) const = 0;

  // The tokens that uniforms[step] pick of logits [rows, vocabulary], by the sums of probabilities in the
  // order of ids; the most probable ones at temperature 0. Writes token [rows], and row `step` of tokens and
  // log_probabilities (at temperature 1). uniforms: [steps, rows] float64; step: [1] int64.
  virtual void draw(const at::Tensor& logits, const at::Tensor& uniforms, const at::Tensor& step,
                    double temperature, const at::Tensor& token, const at::Tensor& tokens,
                    const at::Tensor& log_probabilities) const = 0;

  // Whether attend_to_cache() serves heads of that many elements.
  virtual bool attends_to_cache(std::int64_t heads, std::int64_t kv_heads, std::int64_t size) const = 0;
  // One query of each sequence, [sequences, heads, size] with rows any distance apart, over the first used[i]
  // (at least 1, int32) of its `length` places: keys, values: [sequences * length, kv_heads, size]. scale: of
  // queries times keys. out: [sequences, heads * size].
  virtual void attend_to_cache(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                               std::int64_t length, const at::Tensor& used, double scale,
                               const at::Tensor& out) const = 0;

  // Whether attend_packed() serves heads of that many elements: by cuDNN, on Hopper and newer.
  virtual bool attends_packed(std::int64_t heads, std::int64_t kv_heads, std::int64_t size) const = 0;
  // Each query over the keys of its segment up to its own place. `heads`: parts of the same rows. out:
  // [tokens, heads, size]; sums: [tokens, heads] float32, for the backward pass. False, after one warning,
  // where cuDNN cannot: nothing was done then, and it is not asked again.
  virtual bool attend_packed(const TurnedHeads& heads, const Ragged& ragged, double scale,
                             const at::Tensor& out, const at::Tensor& sums) const = 0;
  // `gradients`: parts of rows as long as those of `heads`. Adds up in no fixed order.
  virtual void attend_packed_backward(const TurnedHeads& heads, const Ragged& ragged, double scale,
                                      const at::Tensor& out, const at::Tensor& sums, const at::Tensor& dout,
                                      const TurnedHeads& gradients) const = 0;

  // AdamW. weights, gradients: [n]; master, first, second: [n] float32; decays: [n / 16] uint8, whether
  // weights decay.
  virtual void adamw(const at::Tensor& weights, const at::Tensor& gradients, const at::Tensor& master,
                     const at::Tensor& first, const at::Tensor& second, const at::Tensor& decays,
                     const AdamRates& rates) const = 0;
};

// The module warpsmith-gpu.so beside the programs, which is linked with torch's CUDA library. Throws Error
// where it or NVRTC is missing.
const Fused& gpu_module();
// Its fused operations. Null where `options` are not bfloat16 on a GPU that is new enough, and, after one
// warning, where the module is missing.
const Fused* fused_for(const at::TensorOptions& options);
inline const Fused* fused_for(const at::Tensor& x) { return fused_for(x.options()); }

}  // namespace warpsmith::model

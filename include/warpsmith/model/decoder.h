// A decoder of the Llama family (Qwen2, Qwen3, Llama, Mistral): RMSNorm, rotary positions, grouped-query
// attention, SwiGLU; over packed batches (packed_batch.h). With what StarCoder2, Qwen3 MoE and DeepSeek V2
// and V3 have in these parts' places.
//
// Two backends compute the same. `loops`, for plain decoders: fused loops on the CPU in float32 or float64
// beside ATen's matrix products; for a given number of threads, results repeat bit for bit. `operators`:
// torch's operators, on any device, in bfloat16 as well.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "warpsmith/model/packed_batch.h"

namespace warpsmith::model {

enum class Backend { kLoops, kOperators };
// Loops where they can: on the CPU in float32 and float64, of plain decoders.
Backend backend_for(const at::TensorOptions& options, const DecoderSettings& settings);

// A low-rank addition to rows [first_row, first_row + rows) of a matrix (LoRA, Hu et al. 2021): what the
// matrix makes of x grows by scale * b a x.
struct Adapter {
  std::int64_t first_row = 0;
  at::Tensor a;  // [rank, columns of the matrix]
  at::Tensor b;  // [rows, rank]
};

struct LayerWeights {
  at::Tensor attention_norm;  // [width]
  at::Tensor qkv, qkv_bias;   // [qkv_width, width], [qkv_width] (undefined without)
  at::Tensor q_norm, k_norm;  // [head_dim] (undefined without qk_norm)
  at::Tensor attention_out;   // [width, heads * head_dim]
  at::Tensor mlp_norm;        // [width]
  at::Tensor gate_up;         // [2 * hidden, width]
  at::Tensor down;            // [width, hidden]
  // Of the families that are not plain; shapes: parameters_of().
  at::Tensor attention_norm_bias, attention_out_bias, mlp_norm_bias, up, up_bias, down_bias;
  at::Tensor router, router_bias, experts_gate_up, experts_down, shared_gate_up, shared_down;
  at::Tensor query_down, query_norm, query, kv_down, kv_norm, kv_up;
  // In the order of their rows; empty without LoRA.
  std::vector<Adapter> qkv_adapters, attention_out_adapters, gate_up_adapters, down_adapters;
};

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  bool decays;  // matrices do; norms and biases do not
};

// Weights that are trained are leaves of autograd that lie in one flat buffer, as their gradients do in
// another: each begins at a multiple of 16 elements, gaps stay zero. Without LoRA those are all weights; with
// it the adapters alone, and the rest, in a buffer of its own, has no gradient.
class Decoder {
 public:
  // All zero.
  explicit Decoder(const DecoderSettings& settings, at::TensorOptions options = at::kFloat);
  Decoder(const DecoderSettings& settings, at::TensorOptions options, Backend backend);
  Decoder(Decoder&&) = default;
  Decoder& operator=(Decoder&&) = default;
  // The same weights on another device, in another type or by another backend.
  Decoder copied(at::TensorOptions options) const { return copied(options, backend_for(options, settings_)); }
  Decoder copied(at::TensorOptions options, Backend backend) const;

  // Another decoder over the same weights, with adapters of its own, all zero: they add nothing.
  Decoder beside() const;
  // Without adapters: what they add is in the matrices. On the CPU in float32.
  Decoder merged() const;

  // On the CPU in float32 or float64. Normal(0, init_deviation), those that add to the residual stream
  // divided by sqrt(2 * layers), norms one, biases zero. A function of `seed` and each parameter's name
  // alone.
  void initialise(std::uint64_t seed);
  // The adapters alone: `a` uniform in ±1/sqrt(columns), as PEFT has it, `b` zero.
  void initialise_adapters(std::uint64_t seed);

  const DecoderSettings& settings() const { return settings_; }
  at::TensorOptions options() const { return flat_.options(); }
  Backend backend() const { return backend_; }
  // Layers are computed again in the backward pass, which holds each layer's input alone.
  void recompute(bool on) { recompute_ = on; }

  const std::vector<NamedTensor>& parameters() const { return named_; }  // without adapters
  const std::vector<NamedTensor>& adapters() const { return named_adapters_; }
  const std::vector<NamedTensor>& trained() const {
    return settings_.lora.rank > 0 ? named_adapters_ : named_;
  }
  const at::Tensor& flat() const { return flat_; }  // all but the adapters
  const at::Tensor& trained_flat() const { return settings_.lora.rank > 0 ? flat_adapters_ : flat_; }
  const at::Tensor& flat_gradient() const { return gradient_; }  // of trained_flat()
  void zero_gradient();

  // Logits after each of batch.rows: [rows, vocabulary]. Differentiable where gradients are on.
  at::Tensor logits(const PackedBatch& batch) const;
  // log softmax(logits)[targets]: [rows], float32 or float64. `known`: the gradient that backward() will
  // bring to them, where it does not depend on them; saves time.
  at::Tensor log_probabilities(const PackedBatch& batch, const at::Tensor& known = {}) const;

  // For the sampler.
  const at::Tensor& embedding() const { return embedding_; }                      // [vocabulary, width]
  const at::Tensor& head() const { return settings_.tied ? embedding_ : head_; }  // [vocabulary, width]
  at::Tensor normed(const at::Tensor& x) const;  // by the norm in front of the head
  const at::Tensor& final_norm() const { return final_norm_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  const at::Tensor& cosine() const { return cosine_; }  // [context, rope_dim / 2]
  const at::Tensor& sine() const { return sine_; }

 private:
  Decoder(const Decoder&) = default;          // over the same weights and adapters
  at::Tensor& slot(const std::string& name);  // where the parameter of that name is kept
  void add_adapters(const at::TensorOptions& options);
  at::Tensor behind_layers(const struct Packing& packing) const;  // normed, of the rows that are asked for

  DecoderSettings settings_;
  Backend backend_;
  bool recompute_ = false;
  at::Tensor flat_, flat_adapters_, gradient_;
  at::Tensor embedding_, head_, final_norm_, final_norm_bias_, cosine_, sine_;
  std::vector<LayerWeights> layers_;
  std::vector<NamedTensor> named_, named_adapters_;
};

}  // namespace warpsmith::model

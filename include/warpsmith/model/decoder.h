// A decoder of the Llama family (Qwen2, Qwen3, Llama, Mistral): RMSNorm, rotary positions, grouped-query
// attention, SwiGLU.
//
// Sequences are packed: all tokens of a batch in one list, cut into segments, so nothing is padded. A segment
// attends to itself causally, and to all of one earlier segment if it names one as its prefix: a prompt
// shared by several completions is computed once, and its gradient is the sum over them.
//
// Works on the CPU in float32 (float64 in tests). Matrix products are ATen's; the rest are fused loops with
// backward functions of their own (src/model/functions.h). For a given number of threads, results repeat bit
// for bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "warpsmith/model/settings.h"

namespace warpsmith::model {

// Tokens [begin, begin + length) of a batch.
struct Segment {
  std::int64_t begin = 0, length = 0;
  std::int64_t prefix = -1;  // an earlier segment of the batch, without a prefix of its own; -1: none
};

struct PackedBatch {
  std::vector<Token> tokens;
  std::vector<Segment> segments;
  // What is asked of it: the log-probability of targets[i] after the token in row rows[i].
  std::vector<std::int64_t> rows;
  std::vector<Token> targets;
};

// A segment for `prompt` and, sharing it, one for each completion; asks for every token of every completion.
void append_group(PackedBatch& batch, const std::vector<Token>& prompt,
                  const std::vector<std::vector<Token>>& completions);
// The same question, without sharing: prompt and completion in one segment.
void append_sequence(PackedBatch& batch, const std::vector<Token>& prompt,
                     const std::vector<Token>& completion);

struct LayerWeights {
  at::Tensor attention_norm;  // [width]
  at::Tensor qkv, qkv_bias;   // [qkv_width, width], [qkv_width] (undefined without)
  at::Tensor q_norm, k_norm;  // [head_dim] (undefined without qk_norm)
  at::Tensor attention_out;   // [width, heads * head_dim]
  at::Tensor mlp_norm;        // [width]
  at::Tensor gate_up;         // [2 * hidden, width]
  at::Tensor down;            // [width, hidden]
};

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  bool decays;  // matrices do; norms and biases do not
};

// Parameters are leaves of autograd that lie in one flat buffer, as their gradients do in another: each
// begins at a multiple of 64 bytes, gaps stay zero.
class Decoder {
 public:
  explicit Decoder(const DecoderSettings& settings, at::ScalarType dtype = at::kFloat);  // all zero
  Decoder(Decoder&&) = default;
  Decoder& operator=(Decoder&&) = default;

  // Normal(0, init_deviation), those that add to the residual stream divided by sqrt(2 * layers), norms one,
  // biases zero. A function of `seed` and each parameter's name alone.
  void initialise(std::uint64_t seed);

  const DecoderSettings& settings() const { return settings_; }
  const std::vector<NamedTensor>& parameters() const { return named_; }
  const at::Tensor& flat() const { return flat_; }
  const at::Tensor& flat_gradient() const { return gradient_; }
  void zero_gradient();

  // Logits after each of batch.rows: [rows, vocabulary]. Differentiable where gradients are on.
  at::Tensor logits(const PackedBatch& batch) const;
  // log softmax(logits)[targets]: [rows].
  at::Tensor log_probabilities(const PackedBatch& batch) const;

  // For the sampler.
  const at::Tensor& embedding() const { return embedding_; }                      // [vocabulary, width]
  const at::Tensor& head() const { return settings_.tied ? embedding_ : head_; }  // [vocabulary, width]
  const at::Tensor& final_norm() const { return final_norm_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  const at::Tensor& cosine() const { return cosine_; }  // [context, head_dim / 2]
  const at::Tensor& sine() const { return sine_; }

 private:
  at::Tensor& slot(const std::string& name);  // where the parameter of that name is kept

  DecoderSettings settings_;
  at::Tensor flat_, gradient_;
  at::Tensor embedding_, head_, final_norm_, cosine_, sine_;
  std::vector<LayerWeights> layers_;
  std::vector<NamedTensor> named_;
};

}  // namespace warpsmith::model

// The decoder's operations, by the decoder's backend.
#pragma once

#include <ATen/core/Tensor.h>

#include "operators.h"
#include "packing.h"
#include "warpsmith/model/decoder.h"

namespace warpsmith::model {

// RMSNorm, or LayerNorm where the settings say so; `bias` is undefined without.
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                const DecoderSettings& settings, Backend backend);
// sum = x + y, and its norm; y may be undefined.
operators::Normed add_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight,
                           const at::Tensor& bias, const DecoderSettings& settings, Backend backend);
at::Tensor swiglu(const at::Tensor& gate_up, Backend backend);  // [rows, 2 * hidden] -> [rows, hidden]

// Without latent attention: queries, keys and values of rows behind a layer's first norm, before they are
// rotated: [rows, qkv_width].
at::Tensor qkv_of(const at::Tensor& normed, const LayerWeights& weights, const DecoderSettings& settings,
                  Backend backend);
// The same for any decoder by the operators, rotated, head by head. x: in front of that norm.
operators::Heads heads_of_layer(const at::Tensor& x, const LayerWeights& weights,
                                const DecoderSettings& settings, const at::Tensor& positions,
                                const at::Tensor& cosine, const at::Tensor& sine);
double score_scale(const DecoderSettings& settings);  // of queries times keys
struct Attended {
  at::Tensor x;         // what came, to be used in its place
  at::Tensor attended;  // [tokens, attention_width]
};
// A layer's attention, its first norm included.
Attended attention_of(const at::Tensor& x, const LayerWeights& weights, const DecoderSettings& settings,
                      const at::Tensor& cosine, const at::Tensor& sine, const Packing& packing,
                      Backend backend);
// The rest of a layer: x + attended's projection, and the MLP of that: [rows, width].
at::Tensor behind_attention(const at::Tensor& x, const at::Tensor& attended, const LayerWeights& weights,
                            const DecoderSettings& settings, Backend backend);

// The same by the operators, not yet added up: whoever norms the sum next does that as well.
struct Sum {
  at::Tensor x, more;
};
Sum parts_behind_attention(const at::Tensor& x, const at::Tensor& attended, const LayerWeights& weights,
                           const DecoderSettings& settings);

// log softmax(x head^T)[targets]: [rows] float32 (float64 where x is). Logits exist for a part of the rows at
// a time, and are computed again in the backward pass where there is more than one part. `known`: the
// gradient that will come back, where that is known already: then nothing is computed twice.
at::Tensor head_log_probabilities(const at::Tensor& x, const at::Tensor& head, const at::Tensor& targets,
                                  const at::Tensor& known = {});

}  // namespace warpsmith::model

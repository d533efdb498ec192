// The decoder's operations, by the decoder's backend.
#pragma once

#include <ATen/core/Tensor.h>

#include "packing.h"
#include "warpsmith/model/decoder.h"

namespace warpsmith::model {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon, Backend backend);
at::Tensor swiglu(const at::Tensor& gate_up, Backend backend);  // [rows, 2 * hidden] -> [rows, hidden]
// Rotates queries and keys, then attends: [tokens, qkv_width] -> [tokens, heads * head_dim].
at::Tensor attention(const at::Tensor& qkv, const at::Tensor& cosine, const at::Tensor& sine,
                     const Packing& packing, Backend backend);

// Queries, keys and values behind a layer's first norm, before they are rotated: [rows, qkv_width].
at::Tensor qkv_of(const at::Tensor& x, const LayerWeights& weights, const DecoderSettings& settings,
                  Backend backend);
// The rest of a layer: x + attended's projection, and the MLP of that: [rows, width].
at::Tensor behind_attention(const at::Tensor& x, const at::Tensor& attended, const LayerWeights& weights,
                            const DecoderSettings& settings, Backend backend);

// log softmax(x head^T)[targets]: [rows] float32 (float64 where x is). Logits exist for a part of the rows at
// a time, and are computed again in the backward pass where there is more than one part. `known`: the
// gradient that will come back, where that is known already: then nothing is computed twice.
at::Tensor head_log_probabilities(const at::Tensor& x, const at::Tensor& head, const at::Tensor& targets,
                                  const at::Tensor& known = {});

}  // namespace warpsmith::model

// The decoder's operations besides matrix products, differentiable once.
#pragma once

#include <ATen/core/Tensor.h>

#include "attention.h"

namespace warpsmith::model {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);  // [rows, width]
at::Tensor swiglu(const at::Tensor& gate_up);  // [rows, 2 * hidden] -> [rows, hidden]

// Rotates queries and keys, then attends. positions: [tokens] int64; cosine, sine: [context, head_dim / 2].
at::Tensor attention(const at::Tensor& qkv, const at::Tensor& positions, const at::Tensor& cosine,
                     const at::Tensor& sine, const std::vector<Segment>& segments, const HeadShape& shape);

// Queries, keys and values behind a layer's first norm, before they are rotated: [rows, qkv_width].
at::Tensor qkv_of(const at::Tensor& x, const LayerWeights& weights, const DecoderSettings& settings);

// In place, on plain memory.
void rotate_rows(at::Tensor& qkv, const at::Tensor& positions, const at::Tensor& cosine,
                 const at::Tensor& sine, const HeadShape& shape, int sign);

}  // namespace warpsmith::model

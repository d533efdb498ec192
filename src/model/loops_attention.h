// Attention over packed segments, forward and backward, in blocks of queries: the scores of one block fit the
// cache and are computed again in the backward pass, as in FlashAttention (Dao et al. 2022). Products are
// ATen's.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "packing.h"

namespace warpsmith::model::loops {

// qkv: [tokens, (heads + 2 * kv_heads) * head_dim], rotated: queries, keys, values side by side.
// out: [tokens, heads * head_dim], log_sums: [heads, tokens]; both are set.
void attention_forward(const at::Tensor& qkv, const std::vector<Segment>& segments, const HeadShape& shape,
                       at::Tensor& out, at::Tensor& log_sums);

// dqkv is set. Every sum is formed in one fixed order, whatever the number of threads.
void attention_backward(const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& log_sums,
                        const at::Tensor& dout, const std::vector<Segment>& segments, const HeadShape& shape,
                        at::Tensor& dqkv);

}  // namespace warpsmith::model::loops

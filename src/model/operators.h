// The same by torch's operators: any device, float32, float64 and bfloat16, differentiable once.
#pragma once

#include <ATen/core/Tensor.h>

#include "packing.h"

namespace warpsmith::model::operators {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);
struct Normed {
  at::Tensor sum, normed;
};
// sum = x + y, and its norm; y undefined: x itself. Both are to be used in x's place, so that their gradients
// are formed together.
Normed add_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight, double epsilon);
at::Tensor swiglu(const at::Tensor& gate_up);
// x: [tokens, heads, size], its pairs (i, i + size / 2) turned by the angles of their positions. cosine,
// sine: [context, size / 2].
at::Tensor rotate(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& cosine,
                  const at::Tensor& sine);

struct Heads {
  at::Tensor queries;  // [tokens, heads, head_dim], rotated
  at::Tensor keys;     // [tokens, kv_heads, head_dim], rotated
  at::Tensor values;   // [tokens, kv_heads, value_dim]
};
// The parts of [tokens, qkv_width].
Heads heads_of(const at::Tensor& qkv, const at::Tensor& positions, const at::Tensor& cosine,
               const at::Tensor& sine, const HeadShape& shape);
// By FlashAttention over packed segments on a GPU in bfloat16 or float16, else segment by segment. `scale`:
// of queries times keys. [tokens, heads * value_dim].
at::Tensor attend(const Heads& heads, const Packing& packing, double scale);
// The same over [tokens, qkv_width], by the fused form where there is one: qkv's memory is overwritten then.
at::Tensor attend(const at::Tensor& qkv, const Packing& packing, const at::Tensor& cosine,
                  const at::Tensor& sine, double scale);

// Keys and values of sequences that grow, `length` places each: [sequences * length, kv_heads, head_dim].
struct Cache {
  at::Tensor keys, values;
  std::int64_t length;
  at::Tensor query_ends, key_ends;  // 0, 1, 2 …; 0, length, 2 * length …: [sequences + 1] int32
};
// Puts keys and values of one token a sequence at their rows of the cache.
void put_into_cache(const Heads& heads, const Cache& cache, const at::Tensor& rows);
// Turns the parts of qkv [sequences, qkv_width] and puts keys and values at their rows of the cache: the
// queries. qkv's memory may be overwritten.
at::Tensor put_into_cache(const at::Tensor& qkv, const at::Tensor& positions, const at::Tensor& cosine,
                          const at::Tensor& sine, const HeadShape& shape, const Cache& cache,
                          const at::Tensor& rows);
// One query of each sequence, over its first used[i] places: [sequences, heads, head_dim] -> [sequences,
// heads * head_dim]. used: [sequences] int32. No place from
// `longest` on is looked at.
at::Tensor attend_to_cache(const at::Tensor& queries, const Cache& cache, const at::Tensor& used,
                           std::int64_t longest, double scale);
// Whether attention looks at no more places than it must without being told `longest`: a step's shapes are
// the same then from the first to the last.
bool is_flash(const at::Tensor& queries, const at::Tensor& values);

}  // namespace warpsmith::model::operators

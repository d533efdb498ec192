// A packed batch as tensors on a decoder's device: made once a batch, used by every layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "warpsmith/model/fused.h"
#include "warpsmith/model/packed_batch.h"

namespace warpsmith::model {

struct HeadShape {
  std::int64_t heads, kv_heads, head_dim;
};
inline HeadShape head_shape(const DecoderSettings& s) { return {s.heads, s.kv_heads, s.head_dim()}; }

struct Packing {
  at::Tensor tokens, positions;  // [tokens] int64
  at::Tensor rows, targets;      // [rows] int64
  std::vector<Segment> segments;
  HeadShape shape;
  // For attention by operators. Keys of a segment are those of its prefix, then its own: [keys] int64 numbers
  // of rows, undefined where no segment has a prefix and keys lie as queries do.
  at::Tensor key_rows;
  at::Tensor query_ends, key_ends;  // [segments + 1] int32: where each segment's queries and keys begin
  std::int64_t most_queries = 0, most_keys = 0;  // of one segment
  Ragged
      ragged;  // where Fused::attend_packed() may be used: no prefixes, and no fixed order of sums is asked
};

// Throws Error for a token that is not in the vocabulary, and for a sequence that is longer than the context.
Packing make_packing(const PackedBatch& batch, const DecoderSettings& settings, at::Device device);

}  // namespace warpsmith::model

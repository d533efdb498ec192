#include "loops_attention.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <cmath>

#include "warpsmith/model/kernels.h"

namespace warpsmith::model::loops {

namespace {

constexpr std::int64_t kBlock =
    96;  // queries at a time: less is wasted above the diagonal, more fills a product

// Columns [column, column + width) of rows [begin, begin + rows).
at::Tensor window(const at::Tensor& matrix, std::int64_t begin, std::int64_t rows, std::int64_t column,
                  std::int64_t width) {
  const std::int64_t stride = matrix.stride(0);
  return matrix.as_strided({rows, width}, {stride, 1}, matrix.storage_offset() + begin * stride + column);
}

// One head's view of one segment.
struct Span {
  Segment own, prefix;  // prefix.length 0: none
};

Span span_of(const std::vector<Segment>& segments, std::size_t s) {
  const Segment& own = segments[s];
  return {own, own.prefix < 0 ? Segment{} : segments[static_cast<std::size_t>(own.prefix)]};
}

std::int64_t most_keys(const std::vector<Segment>& segments) {
  std::int64_t most = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const Span span = span_of(segments, s);
    most = std::max(most, span.own.length + span.prefix.length);
  }
  return most;
}

// scores = q k^T for queries [first, first + rows) of the segment: [rows, prefix + first + rows], prefix keys
// first.
at::Tensor block_scores(const at::Tensor& scratch, const at::Tensor& queries, const at::Tensor& qkv,
                        const Span& span, std::int64_t keys_own, std::int64_t key_column,
                        std::int64_t head_dim) {
  const std::int64_t rows = queries.size(0), prefix = span.prefix.length;
  if (prefix > 0) {
    at::Tensor part = window(scratch, 0, rows, 0, prefix);
    at::mm_out(part, queries, window(qkv, span.prefix.begin, prefix, key_column, head_dim).t());
  }
  at::Tensor part = window(scratch, 0, rows, prefix, keys_own);
  at::mm_out(part, queries, window(qkv, span.own.begin, keys_own, key_column, head_dim).t());
  return window(scratch, 0, rows, 0, prefix + keys_own);
}

template <typename T>
void forward_head(const at::Tensor& qkv, const Span& span, const HeadShape& shape, std::int64_t head,
                  const at::Tensor& scratch, at::Tensor& out, T* log_sums) {
  const Kernels<T>& k = kernels<T>();
  const std::int64_t d = shape.head_dim, kv = head / (shape.heads / shape.kv_heads);
  const std::int64_t key_column = (shape.heads + kv) * d, value_column = key_column + shape.kv_heads * d;
  const T scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(d)));
  for (std::int64_t first = 0; first < span.own.length; first += kBlock) {
    const std::int64_t rows = std::min(kBlock, span.own.length - first), own = first + rows;
    const at::Tensor queries = window(qkv, span.own.begin + first, rows, head * d, d);
    const at::Tensor scores = block_scores(scratch, queries, qkv, span, own, key_column, d);
    T* p = scores.mutable_data_ptr<T>();
    std::array<T, kBlock> sums;
    for (std::int64_t i = 0; i < rows; ++i) {
      T largest = 0;
      const auto at = static_cast<std::size_t>(i);
      sums[at] = k.exponentials(p + i * scores.stride(0), span.prefix.length + first + i + 1,
                                span.prefix.length + own, scale, largest);
      log_sums[span.own.begin + first + i] = largest + std::log(sums[at]);
    }
    at::Tensor result = window(out, span.own.begin + first, rows, head * d, d);
    at::mm_out(result, window(scores, 0, rows, span.prefix.length, own),
               window(qkv, span.own.begin, own, value_column, d));
    if (span.prefix.length > 0)
      at::addmm_out(result, result, window(scores, 0, rows, 0, span.prefix.length),
                    window(qkv, span.prefix.begin, span.prefix.length, value_column, d));
    T* o = result.mutable_data_ptr<T>();
    for (std::int64_t i = 0; i < rows; ++i)
      k.multiply(o + i * result.stride(0), d, T{1} / sums[static_cast<std::size_t>(i)]);
  }
}

// dK += dS^T Q and dV += P^T dO over one run of keys.
void add_key_gradients(const at::Tensor& dqkv, std::int64_t begin, std::int64_t keys, std::int64_t key_column,
                       std::int64_t value_column, const at::Tensor& p, const at::Tensor& ds,
                       const at::Tensor& queries, const at::Tensor& dout) {
  at::Tensor dkeys = window(dqkv, begin, keys, key_column, queries.size(1));
  at::Tensor dvalues = window(dqkv, begin, keys, value_column, queries.size(1));
  at::addmm_out(dkeys, dkeys, ds.t(), queries);
  at::addmm_out(dvalues, dvalues, p.t(), dout);
}

template <typename T>
void backward_head(const at::Tensor& qkv, const at::Tensor& out, const T* log_sums, const at::Tensor& dout,
                   const Span& span, const HeadShape& shape, std::int64_t head, const at::Tensor& scratch_p,
                   const at::Tensor& scratch_ds, at::Tensor& dqkv) {
  const Kernels<T>& k = kernels<T>();
  const std::int64_t d = shape.head_dim, kv = head / (shape.heads / shape.kv_heads);
  const std::int64_t key_column = (shape.heads + kv) * d, value_column = key_column + shape.kv_heads * d;
  const std::int64_t prefix = span.prefix.length;
  const T scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(d)));
  for (std::int64_t first = 0; first < span.own.length; first += kBlock) {
    const std::int64_t begin = span.own.begin + first;
    const std::int64_t rows = std::min(kBlock, span.own.length - first), own = first + rows;
    const at::Tensor queries = window(qkv, begin, rows, head * d, d);
    const at::Tensor dresult = window(dout, begin, rows, head * d, d);
    const at::Tensor p = block_scores(scratch_p, queries, qkv, span, own, key_column, d);
    // dP = dO V^T
    const at::Tensor ds = block_scores(scratch_ds, dresult, qkv, span, own, value_column, d);
    for (std::int64_t i = 0; i < rows; ++i) {
      T* p_row = p.mutable_data_ptr<T>() + i * p.stride(0);
      k.probabilities(p_row, prefix + first + i + 1, prefix + own, scale, log_sums[begin + i]);
      const std::int64_t at = (begin + i) * out.stride(0) + head * d;
      const T dotted = k.dot(dout.const_data_ptr<T>() + at, out.const_data_ptr<T>() + at, d);
      k.score_gradients(p_row, ds.mutable_data_ptr<T>() + i * ds.stride(0), prefix + own, dotted, scale);
    }
    at::Tensor dqueries = window(dqkv, begin, rows, head * d, d);
    const at::Tensor ds_own = window(ds, 0, rows, prefix, own);
    at::mm_out(dqueries, ds_own, window(qkv, span.own.begin, own, key_column, d));
    add_key_gradients(dqkv, span.own.begin, own, key_column, value_column, window(p, 0, rows, prefix, own),
                      ds_own, queries, dresult);
    if (prefix > 0) {
      const at::Tensor ds_prefix = window(ds, 0, rows, 0, prefix);
      at::addmm_out(dqueries, dqueries, ds_prefix, window(qkv, span.prefix.begin, prefix, key_column, d));
      add_key_gradients(dqkv, span.prefix.begin, prefix, key_column, value_column,
                        window(p, 0, rows, 0, prefix), ds_prefix, queries, dresult);
    }
  }
}

at::Tensor make_scratch(const at::Tensor& like, std::int64_t keys) {
  return at::empty({kBlock, (keys + 15) / 16 * 16}, like.options());
}

}  // namespace

void attention_forward(const at::Tensor& qkv, const std::vector<Segment>& segments, const HeadShape& shape,
                       at::Tensor& out, at::Tensor& log_sums) {
  const std::int64_t tokens = qkv.size(0), n = static_cast<std::int64_t>(segments.size());
  // Head by head, then segment by segment: threads get equal work however the segments' lengths differ.
  at::parallel_for(0, shape.heads * n, 1, [&](std::int64_t begin, std::int64_t end) {
    const at::AutoDispatchBelowADInplaceOrView guard;  // worker threads would record for autograd
    const at::Tensor scratch = make_scratch(qkv, most_keys(segments));
    for (std::int64_t i = begin; i < end; ++i)
      AT_DISPATCH_FLOATING_TYPES(qkv.scalar_type(), "attention", [&] {
        forward_head<scalar_t>(qkv, span_of(segments, static_cast<std::size_t>(i % n)), shape, i / n, scratch,
                               out, log_sums.mutable_data_ptr<scalar_t>() + i / n * tokens);
      });
  });
}

void attention_backward(const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& log_sums,
                        const at::Tensor& dout, const std::vector<Segment>& segments, const HeadShape& shape,
                        at::Tensor& dqkv) {
  const std::int64_t tokens = qkv.size(0), group = shape.heads / shape.kv_heads;
  dqkv.zero_();
  // Segments that share a prefix add to the same keys: one task has them all, and all heads of its key head.
  std::vector<std::vector<std::size_t>> families;
  std::vector<std::size_t> family_of(segments.size());
  for (std::size_t s = 0; s < segments.size(); ++s) {
    if (segments[s].prefix < 0) families.emplace_back();
    family_of[s] = segments[s].prefix < 0 ? families.size() - 1
                                          : family_of[static_cast<std::size_t>(segments[s].prefix)];
    families[family_of[s]].push_back(s);
  }
  const auto n = static_cast<std::int64_t>(families.size());
  at::parallel_for(0, shape.kv_heads * n, 1, [&](std::int64_t begin, std::int64_t end) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const std::int64_t keys = most_keys(segments);
    const at::Tensor scratch_p = make_scratch(qkv, keys), scratch_ds = make_scratch(qkv, keys);
    for (std::int64_t i = begin; i < end; ++i)
      for (const std::size_t s : families[static_cast<std::size_t>(i % n)])
        for (std::int64_t head = i / n * group; head < (i / n + 1) * group; ++head)
          AT_DISPATCH_FLOATING_TYPES(qkv.scalar_type(), "attention_backward", [&] {
            backward_head<scalar_t>(qkv, out, log_sums.const_data_ptr<scalar_t>() + head * tokens, dout,
                                    span_of(segments, s), shape, head, scratch_p, scratch_ds, dqkv);
          });
  });
}

}  // namespace warpsmith::model::loops

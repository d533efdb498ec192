#include "operators.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

namespace warpsmith::model::operators {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Saves its input alone.
struct SwiGlu : Function<SwiGlu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    context->save_for_backward({gate_up});
    const std::vector<at::Tensor> halves = gate_up.chunk(2, 1);
    return at::silu(halves[0]).mul_(halves[1]);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor gate_up = context->get_saved_variables()[0], &dout = gradients[0];
    const std::vector<at::Tensor> halves = gate_up.chunk(2, 1);
    at::Tensor result = at::empty_like(gate_up);
    std::vector<at::Tensor> out = result.chunk(2, 1);
    at::mul_out(out[1], at::silu(halves[0]), dout);
    at::silu_backward_out(out[0], dout * halves[1], halves[0]);
    return {result};
  }
};

// x: [tokens, heads, head_dim]; cosine, sine: [tokens, 1, head_dim / 2]; sign -1: back.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine, int sign) {
  const std::vector<at::Tensor> halves = x.chunk(2, 2);
  at::Tensor result = at::empty(x.sizes(), x.options());
  std::vector<at::Tensor> out = result.chunk(2, 2);
  at::mul_out(out[0], halves[0], cosine);
  at::mul_out(out[1], halves[1], cosine);
  out[0].sub_(halves[1] * sine, sign);
  out[1].add_(halves[0] * sine, sign);
  return result;
}

// Saves nothing but the angles: its gradient is the rotation back.
struct Rotate : Function<Rotate> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cosine,
                            const at::Tensor& sine) {
    context->save_for_backward({cosine, sine});
    return rotated(x, cosine, sine, 1);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    return {rotated(gradients[0], saved[0], saved[1], -1), at::Tensor(), at::Tensor()};
  }
};

// One segment after the other. queries: [tokens, heads, head_dim]; keys, values: those of all segments in a
// row.
at::Tensor attend_by_segment(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                             const Packing& packing, double scale) {
  std::vector<at::Tensor> parts;
  std::int64_t first_key = 0;
  for (const Segment& segment : packing.segments) {
    const std::int64_t before =
        segment.prefix < 0 ? 0 : packing.segments[static_cast<std::size_t>(segment.prefix)].length;
    const std::int64_t all = before + segment.length;
    const auto heads_first = [](const at::Tensor& x, std::int64_t begin, std::int64_t length) {
      return x.narrow(0, begin, length).transpose(0, 1).unsqueeze(0);
    };
    std::optional<at::Tensor> seen;
    if (before > 0) seen = at::ones({segment.length, all}, queries.options().dtype(at::kBool)).tril(before);
    parts.push_back(at::scaled_dot_product_attention(heads_first(queries, segment.begin, segment.length),
                                                     heads_first(keys, first_key, all),
                                                     heads_first(values, first_key, all), seen, 0.0,
                                                     before == 0, scale, queries.size(1) != keys.size(1))
                        .squeeze(0)
                        .transpose(0, 1));
    first_key += all;
  }
  return at::cat(parts).flatten(1);
}

}  // namespace

static bool can_flash(const at::Tensor& queries) {
  return queries.is_cuda() &&
         (queries.scalar_type() == at::kBFloat16 || queries.scalar_type() == at::kHalf) &&
         queries.size(2) <= 256 && queries.size(2) % 8 == 0;
}

bool is_flash(const at::Tensor& queries, const at::Tensor& values) {
  return can_flash(queries) && queries.size(2) == values.size(2);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  if (x.is_cuda()) return std::get<0>(at::_fused_rms_norm(x, {x.size(-1)}, weight, epsilon));
  const bool half = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  const at::Tensor wide = half ? x.to(at::kFloat) : x;
  const at::Tensor normed = wide * at::rsqrt(wide.square().mean(-1, true) + epsilon);
  return normed.to(x.scalar_type()) * weight;
}

at::Tensor swiglu(const at::Tensor& gate_up) { return SwiGlu::apply(gate_up); }

at::Tensor rotate(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& cosine,
                  const at::Tensor& sine) {
  const auto of_tokens = [&](const at::Tensor& table) {
    return table.index_select(0, positions).unsqueeze(1);
  };
  return Rotate::apply(x, of_tokens(cosine), of_tokens(sine));
}

Heads heads_of(const at::Tensor& qkv, const at::Tensor& positions, const at::Tensor& cosine,
               const at::Tensor& sine, const HeadShape& shape) {
  const std::int64_t turning = shape.heads + shape.kv_heads, d = shape.head_dim;
  const auto part = [&](std::int64_t first, std::int64_t heads) {
    return qkv.narrow(1, first * d, heads * d).view({qkv.size(0), heads, d});
  };
  const at::Tensor turned = rotate(part(0, turning), positions, cosine, sine);
  return {turned.narrow(1, 0, shape.heads), turned.narrow(1, shape.heads, shape.kv_heads),
          part(turning, shape.kv_heads)};
}

at::Tensor attend(const Heads& heads, const Packing& packing, double scale) {
  at::Tensor keys = heads.keys, values = heads.values;
  if (packing.key_rows.defined()) {
    keys = keys.index_select(0, packing.key_rows);
    values = values.index_select(0, packing.key_rows);
  }
  if (!can_flash(heads.queries)) return attend_by_segment(heads.queries, keys, values, packing, scale);
  // It wants values as wide as keys.
  const std::int64_t size = values.size(2), more = keys.size(2) - size;
  if (more > 0) values = at::constant_pad_nd(values, {0, more});
  return std::get<0>(at::_flash_attention_forward(heads.queries, keys, values, packing.query_ends,
                                                  packing.key_ends, packing.most_queries, packing.most_keys,
                                                  0.0, true, false, scale))
      .narrow(2, 0, size)
      .flatten(1);
}

at::Tensor attend_to_cache(const at::Tensor& queries, const Cache& cache, const at::Tensor& used,
                           std::int64_t longest, double scale) {
  const std::int64_t sequences = queries.size(0);
  if (is_flash(queries, cache.values))
    return std::get<0>(at::_flash_attention_forward(queries, cache.keys, cache.values, cache.query_ends,
                                                    cache.key_ends, 1, cache.length, 0.0, false, false, scale,
                                                    std::nullopt, std::nullopt, used))
        .flatten(1);
  const auto of_sequences = [&](const at::Tensor& rows) {  // [sequences, kv_heads, longest, head_dim]
    return rows.view({sequences, cache.length, rows.size(1), rows.size(2)})
        .narrow(1, 0, longest)
        .transpose(1, 2);
  };
  const at::Tensor seen =
      at::arange(longest, used.options()).unsqueeze(0).lt(used.unsqueeze(1)).view({sequences, 1, 1, longest});
  return at::scaled_dot_product_attention(queries.unsqueeze(2), of_sequences(cache.keys),
                                          of_sequences(cache.values), seen, 0.0, false, scale,
                                          queries.size(1) != cache.keys.size(1))
      .squeeze(2)
      .flatten(1);
}

}  // namespace warpsmith::model::operators

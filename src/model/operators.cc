#include "operators.h"

#include "warpsmith/model/fused.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

namespace warpsmith::model::operators {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// The fused operations, where x is such rows that they take, parts of rows `width` long.
const Fused* fused_rows(const at::Tensor& x, std::int64_t width) {
  return width % 8 == 0 && x.is_contiguous() ? fused_for(x) : nullptr;
}
constexpr std::int64_t kWidestNorm = 8192;

// Saves its input alone.
struct SwiGlu : Function<SwiGlu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    context->save_for_backward({gate_up});
    const std::vector<at::Tensor> halves = gate_up.chunk(2, 1);
    if (const Fused* const fused = fused_rows(gate_up, halves[0].size(1))) {
      at::Tensor out = at::empty(halves[0].sizes(), gate_up.options());
      fused->swiglu(gate_up, out);
      return out;
    }
    return at::silu(halves[0]).mul_(halves[1]);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor gate_up = context->get_saved_variables()[0], &dout = gradients[0];
    const std::vector<at::Tensor> halves = gate_up.chunk(2, 1);
    at::Tensor result = at::empty_like(gate_up);
    if (const Fused* const fused = fused_rows(gate_up, halves[0].size(1))) {
      fused->swiglu_backward(gate_up, dout.contiguous(), result);
      return {result};
    }
    std::vector<at::Tensor> out = result.chunk(2, 1);
    at::mul_out(out[1], at::silu(halves[0]), dout);
    at::silu_backward_out(out[0], dout * halves[1], halves[0]);
    return {result};
  }
};

// Saves the sum and one number a row.
struct AddNorm : Function<AddNorm> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const std::optional<at::Tensor>& y, const at::Tensor& weight, double epsilon) {
    const at::Tensor sum = y ? at::empty_like(x) : x, normed = at::empty_like(x);
    const at::Tensor scale = at::empty({x.size(0)}, x.options().dtype(at::kFloat));
    fused_for(x)->add_norm(x, y.value_or(at::Tensor()), weight, epsilon, sum, normed, scale);
    context->save_for_backward({sum, scale, weight});
    context->saved_data["two"] = y.has_value();
    context->set_materialize_grads(false);
    return {sum, normed};
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool two = context->saved_data["two"].toBool();
    const at::Tensor &dsum = gradients[0], &dnormed = gradients[1];
    if (!dnormed.defined()) return {dsum, two ? dsum : at::Tensor(), at::Tensor(), at::Tensor()};
    at::Tensor dx = at::empty_like(saved[0]);
    const at::Tensor dweight = fused_for(dx)->norm_backward(
        saved[0], saved[1], saved[2], dnormed.contiguous(), dsum.defined() ? dsum.contiguous() : dsum, dx);
    return {dx, two ? dx : at::Tensor(), dweight, at::Tensor()};
  }
};

TurnedHeads parts_of(const at::Tensor& qkv, const HeadShape& shape) {
  const std::int64_t d = shape.head_dim;
  const auto part = [&](std::int64_t first, std::int64_t heads) {
    return qkv.narrow(1, first * d, heads * d).view({qkv.size(0), heads, d});
  };
  return {part(0, shape.heads), part(shape.heads, shape.kv_heads),
          part(shape.heads + shape.kv_heads, shape.kv_heads)};
}

// The fused operations, where they turn these heads.
const Fused* fused_turn(const at::Tensor& qkv, const HeadShape& shape) {
  return shape.head_dim % 16 == 0 ? fused_rows(qkv, qkv.size(1)) : nullptr;
}

at::Tensor rows_or_all(const at::Tensor& x, const at::Tensor& rows) {
  return rows.defined() ? x.index_select(0, rows) : x;
}

// Rotation and attention in one, by cuDNN or FlashAttention 2: saves the turned qkv, in place of the one that
// came, and the result.
struct Attend : Function<Attend> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, const at::Tensor& cosine,
                            const at::Tensor& sine, const Packing& packing, double scale) {
    const TurnedHeads heads = parts_of(qkv, packing.shape);
    const Fused& fused = *fused_for(qkv);
    fused.turn(heads, heads, packing.positions, {}, cosine, sine, 1);
    auto& kept = context->saved_data;
    kept["shape"] =
        std::vector<std::int64_t>{packing.shape.heads, packing.shape.kv_heads, packing.shape.head_dim,
                                  packing.most_queries, packing.most_keys};
    kept["scale"] = scale;
    kept["longest"] = std::int64_t{0};
    if (const Ragged& ragged = packing.ragged; ragged.lengths.defined()) {
      const at::Tensor result = at::empty(heads.queries.sizes(), qkv.options());
      const at::Tensor logsums =
          at::empty({qkv.size(0), packing.shape.heads}, qkv.options().dtype(at::kFloat));
      if (fused.attend_packed(heads, ragged, scale, result, logsums)) {
        kept["longest"] = ragged.longest;
        context->save_for_backward({qkv, result, logsums, cosine, sine, packing.positions, ragged.lengths,
                                    ragged.qkv, ragged.out, ragged.sums});
        return result.flatten(1);
      }
    }
    const auto [out, sums, seed, unused, mask] = at::_flash_attention_forward(
        heads.queries, rows_or_all(heads.keys, packing.key_rows), rows_or_all(heads.values, packing.key_rows),
        packing.query_ends, packing.key_ends, packing.most_queries, packing.most_keys, 0.0, true, false,
        scale);
    context->save_for_backward({qkv, out, sums, cosine, sine, packing.positions, seed, unused,
                                packing.query_ends, packing.key_ends, packing.key_rows});
    return out.flatten(1);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &qkv = saved[0], &out = saved[1], &sums = saved[2], &positions = saved[5];
    const Fused& fused = *fused_for(qkv);
    const std::vector<std::int64_t> kept = context->saved_data["shape"].toIntVector();
    const HeadShape shape{kept[0], kept[1], kept[2]};
    const double scale = context->saved_data["scale"].toDouble();
    const TurnedHeads heads = parts_of(qkv, shape);
    const at::Tensor dout = gradients[0].contiguous().view(out.sizes()), result = at::empty_like(qkv);
    const TurnedHeads parts = parts_of(result, shape);
    if (const std::int64_t longest = context->saved_data["longest"].toInt(); longest > 0) {
      fused.attend_packed_backward(heads, {saved[6], saved[7], saved[8], saved[9], longest}, scale, out, sums,
                                   dout, parts);
      fused.turn(parts, parts, positions, {}, saved[3], saved[4], -1);
      return {result, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
    }
    const at::Tensor& rows = saved[10];
    auto [queries, keys, values] = at::_flash_attention_backward(
        dout, heads.queries, rows_or_all(heads.keys, rows), rows_or_all(heads.values, rows), out, sums,
        saved[8], saved[9], kept[3], kept[4], 0.0, true, saved[6], saved[7], scale);
    const auto gathered = [&](const at::Tensor& x) {  // of a row that serves several segments
      return rows.defined() ? at::zeros(heads.keys.sizes(), x.options()).index_add_(0, rows, x) : x;
    };
    fused.turn({queries, gathered(keys), gathered(values)}, parts, positions, {}, saved[3], saved[4], -1);
    return {result, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
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

constexpr std::int64_t kWidestFlashHead = 256;

}  // namespace

static bool can_flash(const at::Tensor& queries) {
  return queries.is_cuda() &&
         (queries.scalar_type() == at::kBFloat16 || queries.scalar_type() == at::kHalf) &&
         queries.size(2) <= kWidestFlashHead && queries.size(2) % 8 == 0;
}

bool is_flash(const at::Tensor& queries, const at::Tensor& values) {
  return can_flash(queries) && queries.size(2) == values.size(2);
}

static bool is_normed_fused(const at::Tensor& x) {
  return x.dim() == 2 && x.size(1) <= kWidestNorm && fused_rows(x, x.size(1)) != nullptr;
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  if (is_normed_fused(x)) return AddNorm::apply(x, std::nullopt, weight, epsilon)[1];
  if (x.is_cuda()) return std::get<0>(at::_fused_rms_norm(x, {x.size(-1)}, weight, epsilon));
  const bool half = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  const at::Tensor wide = half ? x.to(at::kFloat) : x;
  const at::Tensor normed = wide * at::rsqrt(wide.square().mean(-1, true) + epsilon);
  return normed.to(x.scalar_type()) * weight;
}

Normed add_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight, double epsilon) {
  if (is_normed_fused(x) && (!y.defined() || y.is_contiguous())) {
    const variable_list both =
        AddNorm::apply(x, y.defined() ? std::optional(y) : std::nullopt, weight, epsilon);
    return {both[0], both[1]};
  }
  const at::Tensor sum = y.defined() ? x + y : x;
  return {sum, rms_norm(sum, weight, epsilon)};
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
  const TurnedHeads parts = parts_of(qkv, shape);
  if (const Fused* const fused = at::GradMode::is_enabled() ? nullptr : fused_turn(qkv, shape)) {
    fused->turn(parts, parts, positions, {}, cosine, sine, 1);
    return {parts.queries, parts.keys, parts.values};
  }
  const std::int64_t turning = shape.heads + shape.kv_heads;
  const at::Tensor turned =
      rotate(qkv.narrow(1, 0, turning * shape.head_dim).view({qkv.size(0), turning, shape.head_dim}),
             positions, cosine, sine);
  return {turned.narrow(1, 0, shape.heads), turned.narrow(1, shape.heads, shape.kv_heads), parts.values};
}

at::Tensor attend(const at::Tensor& qkv, const Packing& packing, const at::Tensor& cosine,
                  const at::Tensor& sine, double scale) {
  if (packing.shape.head_dim <= kWidestFlashHead && fused_turn(qkv, packing.shape))
    return Attend::apply(qkv, cosine, sine, packing, scale);
  return attend(heads_of(qkv, packing.positions, cosine, sine, packing.shape), packing, scale);
}

at::Tensor put_into_cache(const at::Tensor& qkv, const at::Tensor& positions, const at::Tensor& cosine,
                          const at::Tensor& sine, const HeadShape& shape, const Cache& cache,
                          const at::Tensor& rows) {
  if (const Fused* const fused = fused_turn(qkv, shape)) {
    const TurnedHeads parts = parts_of(qkv, shape);
    fused->turn(parts, {parts.queries, cache.keys, cache.values}, positions, rows, cosine, sine, 1);
    return parts.queries;
  }
  const Heads heads = heads_of(qkv, positions, cosine, sine, shape);
  put_into_cache(heads, cache, rows);
  return heads.queries;
}

void put_into_cache(const Heads& heads, const Cache& cache, const at::Tensor& rows) {
  at::Tensor(cache.keys).index_copy_(0, rows, heads.keys);
  at::Tensor(cache.values).index_copy_(0, rows, heads.values);
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
  const std::int64_t sequences = queries.size(0), heads = queries.size(1);
  const bool same_size = queries.size(2) == cache.values.size(2);
  if (const Fused* const fused = same_size ? fused_for(queries) : nullptr;
      fused != nullptr && fused->attends_to_cache(heads, cache.keys.size(1), queries.size(2))) {
    at::Tensor out = at::empty({sequences, heads * queries.size(2)}, queries.options());
    fused->attend_to_cache(queries, cache.keys, cache.values, cache.length, used, scale, out);
    return out;
  }
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

#include "functions.h"

#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "loops.h"
#include "operators.h"

namespace warpsmith::model {

namespace {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon, Backend backend) {
  return backend == Backend::kLoops ? loops::rms_norm(x, weight, epsilon)
                                    : operators::rms_norm(x, weight, epsilon);
}

// Queries and keys of `qkv`, each head normed by itself.
at::Tensor norm_heads(const at::Tensor& qkv, const LayerWeights& w, const DecoderSettings& s,
                      Backend backend) {
  const std::int64_t d = s.head_dim(), rows = qkv.size(0);
  const auto part = [&](std::int64_t first, std::int64_t heads, const at::Tensor& weight) {
    const at::Tensor heads_of = qkv.narrow(1, first * d, heads * d).reshape({rows * heads, d});
    return rms_norm(heads_of, weight, s.norm_epsilon, backend).view({rows, heads * d});
  };
  return at::cat({part(0, s.heads, w.q_norm), part(s.heads, s.kv_heads, w.k_norm),
                  qkv.narrow(1, (s.heads + s.kv_heads) * d, s.kv_heads * d)},
                 1);
}

// y and what the adapters of its matrix make of x.
at::Tensor adapted(const at::Tensor& y, const at::Tensor& x, const std::vector<Adapter>& adapters,
                   double scale) {
  if (adapters.empty()) return y;
  std::vector<at::Tensor> parts;
  std::int64_t row = 0;
  const auto zeros_to = [&](std::int64_t end) {
    if (end > row) parts.push_back(at::zeros({x.size(0), end - row}, x.options()));
  };
  for (const Adapter& adapter : adapters) {
    zeros_to(adapter.first_row);
    parts.push_back(at::linear(at::linear(x, adapter.a), adapter.b));
    row = adapter.first_row + adapter.b.size(0);
  }
  zeros_to(y.size(1));
  return y.add(parts.size() == 1 ? parts[0] : at::cat(parts, 1), scale);
}

// Queries, keys and values by way of narrow vectors. Part of each query and key has no position; the rest of
// the keys is one vector for all heads.
operators::Heads latent_heads(const at::Tensor& x, const LayerWeights& w, const DecoderSettings& s,
                              const at::Tensor& positions, const at::Tensor& cosine, const at::Tensor& sine) {
  constexpr double kInnerEpsilon = 1e-6;  // of these norms, whatever the model's is
  const LatentSettings& latent = s.latent;
  const std::int64_t rows = x.size(0), plain = latent.plain_size, rope = latent.rope_size;
  const at::Tensor normed = norm(x, w.attention_norm, w.attention_norm_bias, s, Backend::kOperators);
  const at::Tensor narrow = w.query_down.defined() ? operators::rms_norm(at::linear(normed, w.query_down),
                                                                         w.query_norm, kInnerEpsilon)
                                                   : normed;
  const at::Tensor query = at::linear(narrow, w.query).view({rows, s.heads, plain + rope});
  const at::Tensor kv = at::linear(normed, w.kv_down);
  const at::Tensor wide =
      at::linear(operators::rms_norm(kv.narrow(1, 0, latent.kv_rank), w.kv_norm, kInnerEpsilon), w.kv_up)
          .view({rows, s.heads, plain + latent.value_size});
  // All heads' queries and the one key turn together: [rows, heads + 1, rope].
  at::Tensor turning =
      at::cat({query.narrow(2, plain, rope), kv.narrow(1, latent.kv_rank, rope).unsqueeze(1)}, 1);
  if (latent.interleaved)
    turning =
        turning.view({rows, s.heads + 1, rope / 2, 2}).transpose(2, 3).reshape({rows, s.heads + 1, rope});
  const at::Tensor turned = operators::rotate(turning, positions, cosine, sine);
  return {at::cat({query.narrow(2, 0, plain), turned.narrow(1, 0, s.heads)}, 2),
          at::cat({wide.narrow(2, 0, plain), turned.narrow(1, s.heads, 1).expand({rows, s.heads, rope})}, 2),
          wide.narrow(2, plain, latent.value_size)};
}

struct Choice {
  at::Tensor experts, weights;  // [rows, chosen]
};

Choice choose(const at::Tensor& x, const LayerWeights& w, const ExpertSettings& e) {
  const at::Tensor logits = at::linear(x.to(at::kFloat), w.router.to(at::kFloat));
  const at::Tensor scores = e.sigmoid ? logits.sigmoid() : at::softmax(logits, -1);
  at::Tensor ranks = scores.detach();
  if (w.router_bias.defined()) ranks = ranks + w.router_bias.detach();
  if (e.groups > 1) {
    const at::Tensor grouped = ranks.view({x.size(0), e.groups, e.experts / e.groups});
    const at::Tensor of_groups = e.sigmoid ? std::get<0>(grouped.topk(2, -1)).sum(-1) : grouped.amax(-1);
    const at::Tensor best = std::get<1>(of_groups.topk(e.chosen_groups, -1));
    const at::Tensor kept = at::zeros_like(of_groups).scatter_(1, best, 1).unsqueeze(-1).expand_as(grouped);
    ranks = grouped.masked_fill(kept == 0, -std::numeric_limits<double>::infinity()).reshape_as(ranks);
  }
  const at::Tensor experts = std::get<1>(ranks.topk(e.chosen, -1));
  at::Tensor weights = scores.gather(1, experts);
  if (e.normalised) weights = weights / (weights.sum(-1, true) + 1e-20);
  return {experts, weights * e.scaling};
}

// What the experts that the router chooses make of each row, and the shared one: expert by expert.
at::Tensor mixed(const at::Tensor& x, const LayerWeights& w, const DecoderSettings& s) {
  const ExpertSettings& e = s.experts;
  const Choice choice = choose(x, w, e);
  const at::Tensor gate_up = w.experts_gate_up.view({e.experts, 2 * e.hidden, s.width});
  const at::Tensor down = w.experts_down.view({e.experts, s.width, e.hidden});
  at::Tensor sum = at::zeros_like(x);
  for (std::int64_t expert = 0; expert < e.experts; ++expert) {
    const std::vector<at::Tensor> places =
        at::where(choice.experts == expert);  // rows, and which choice of theirs
    if (places[0].numel() == 0) continue;
    const at::Tensor hidden =
        operators::swiglu(at::linear(x.index_select(0, places[0]), gate_up.select(0, expert)));
    const at::Tensor weight = choice.weights.index({places[0], places[1]}).unsqueeze(1).to(x.scalar_type());
    sum = sum.index_add(0, places[0], at::linear(hidden, down.select(0, expert)) * weight);
  }
  if (!w.shared_down.defined()) return sum;
  return sum + at::linear(operators::swiglu(at::linear(x, w.shared_gate_up)), w.shared_down);
}

}  // namespace

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                const DecoderSettings& settings, Backend backend) {
  if (settings.layer_norm) return at::layer_norm(x, {x.size(-1)}, weight, bias, settings.norm_epsilon);
  return rms_norm(x, weight, settings.norm_epsilon, backend);
}

at::Tensor swiglu(const at::Tensor& gate_up, Backend backend) {
  return backend == Backend::kLoops ? loops::swiglu(gate_up) : operators::swiglu(gate_up);
}

operators::Normed add_norm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight,
                           const at::Tensor& bias, const DecoderSettings& s, Backend backend) {
  if (backend == Backend::kOperators && !s.layer_norm)
    return operators::add_norm(x, y, weight, s.norm_epsilon);
  const at::Tensor sum = y.defined() ? x + y : x;
  return {sum, norm(sum, weight, bias, s, backend)};
}

at::Tensor qkv_of(const at::Tensor& normed, const LayerWeights& w, const DecoderSettings& s,
                  Backend backend) {
  const at::Tensor qkv =
      adapted(at::linear(normed, w.qkv, w.qkv_bias), normed, w.qkv_adapters, s.lora.scale());
  return s.qk_norm ? norm_heads(qkv, w, s, backend) : qkv;
}

double score_scale(const DecoderSettings& s) {
  return s.latent.score_factor / std::sqrt(static_cast<double>(s.head_dim()));
}

operators::Heads heads_of_layer(const at::Tensor& x, const LayerWeights& w, const DecoderSettings& s,
                                const at::Tensor& positions, const at::Tensor& cosine,
                                const at::Tensor& sine) {
  if (s.latent.kv_rank > 0) return latent_heads(x, w, s, positions, cosine, sine);
  const at::Tensor normed = norm(x, w.attention_norm, w.attention_norm_bias, s, Backend::kOperators);
  return operators::heads_of(qkv_of(normed, w, s, Backend::kOperators), positions, cosine, sine,
                             head_shape(s));
}

Attended attention_of(const at::Tensor& x, const LayerWeights& w, const DecoderSettings& s,
                      const at::Tensor& cosine, const at::Tensor& sine, const Packing& packing,
                      Backend backend) {
  if (s.latent.kv_rank > 0)
    return {x, operators::attend(heads_of_layer(x, w, s, packing.positions, cosine, sine), packing,
                                 score_scale(s))};
  const auto [sum, normed] = add_norm(x, {}, w.attention_norm, w.attention_norm_bias, s, backend);
  const at::Tensor qkv = qkv_of(normed, w, s, backend);
  return {sum, backend == Backend::kLoops ? loops::attention(qkv, cosine, sine, packing)
                                          : operators::attend(qkv, packing, cosine, sine, score_scale(s))};
}

// x + attended's projection, and its norm.
static operators::Normed middle_of(const at::Tensor& x, const at::Tensor& attended, const LayerWeights& w,
                                   const DecoderSettings& s, Backend backend) {
  const double scale = s.lora.scale();
  if (backend == Backend::kLoops) {
    const at::Tensor sum =
        adapted(at::addmm(x, attended, w.attention_out.t()), attended, w.attention_out_adapters, scale);
    return {sum, norm(sum, w.mlp_norm, w.mlp_norm_bias, s, backend)};
  }
  const at::Tensor out = adapted(at::linear(attended, w.attention_out, w.attention_out_bias), attended,
                                 w.attention_out_adapters, scale);
  return add_norm(x, out, w.mlp_norm, w.mlp_norm_bias, s, backend);
}

static at::Tensor hidden_of(const at::Tensor& normed, const LayerWeights& w, const DecoderSettings& s,
                            Backend backend) {
  return swiglu(adapted(at::linear(normed, w.gate_up), normed, w.gate_up_adapters, s.lora.scale()), backend);
}

Sum parts_behind_attention(const at::Tensor& x, const at::Tensor& attended, const LayerWeights& w,
                           const DecoderSettings& s) {
  const auto [middle, normed] = middle_of(x, attended, w, s, Backend::kOperators);
  if (w.router.defined()) return {middle, mixed(normed, w, s)};
  if (w.up.defined())
    return {middle, at::linear(at::gelu(at::linear(normed, w.up, w.up_bias), "tanh"), w.down, w.down_bias)};
  const at::Tensor hidden = hidden_of(normed, w, s, Backend::kOperators);
  return {middle, adapted(at::linear(hidden, w.down), hidden, w.down_adapters, s.lora.scale())};
}

at::Tensor behind_attention(const at::Tensor& x, const at::Tensor& attended, const LayerWeights& w,
                            const DecoderSettings& s, Backend backend) {
  if (backend == Backend::kOperators || w.router.defined() || w.up.defined()) {
    const auto [middle, more] = parts_behind_attention(x, attended, w, s);
    return middle + more;
  }
  const auto [middle, normed] = middle_of(x, attended, w, s, backend);
  const at::Tensor hidden = hidden_of(normed, w, s, backend);
  return adapted(at::addmm(middle, hidden, w.down.t()), hidden, w.down_adapters, s.lora.scale());
}

}  // namespace warpsmith::model

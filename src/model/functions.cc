#include "functions.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include "loops.h"
#include "operators.h"

namespace warpsmith::model {

namespace {

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

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon, Backend backend) {
  return backend == Backend::kLoops ? loops::rms_norm(x, weight, epsilon)
                                    : operators::rms_norm(x, weight, epsilon);
}

at::Tensor swiglu(const at::Tensor& gate_up, Backend backend) {
  return backend == Backend::kLoops ? loops::swiglu(gate_up) : operators::swiglu(gate_up);
}

at::Tensor attention(const at::Tensor& qkv, const at::Tensor& cosine, const at::Tensor& sine,
                     const Packing& packing, Backend backend) {
  return backend == Backend::kLoops ? loops::attention(qkv, cosine, sine, packing)
                                    : operators::attention(qkv, cosine, sine, packing);
}

at::Tensor qkv_of(const at::Tensor& x, const LayerWeights& w, const DecoderSettings& s, Backend backend) {
  const at::Tensor normed = rms_norm(x, w.attention_norm, s.norm_epsilon, backend);
  const at::Tensor qkv =
      adapted(at::linear(normed, w.qkv, w.qkv_bias), normed, w.qkv_adapters, s.lora.scale());
  return s.qk_norm ? norm_heads(qkv, w, s, backend) : qkv;
}

at::Tensor behind_attention(const at::Tensor& x, const at::Tensor& attended, const LayerWeights& w,
                            const DecoderSettings& s, Backend backend) {
  const double scale = s.lora.scale();
  const at::Tensor middle =
      adapted(at::addmm(x, attended, w.attention_out.t()), attended, w.attention_out_adapters, scale);
  const at::Tensor normed = rms_norm(middle, w.mlp_norm, s.norm_epsilon, backend);
  const at::Tensor hidden =
      swiglu(adapted(at::linear(normed, w.gate_up), normed, w.gate_up_adapters, scale), backend);
  return adapted(at::addmm(middle, hidden, w.down.t()), hidden, w.down_adapters, scale);
}

}  // namespace warpsmith::model

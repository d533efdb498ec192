#include "warpsmith/model/decoder.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "functions.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"

namespace warpsmith::model {

namespace {

// Position of each token in its sequence: behind its prefix, if it has one.
std::vector<std::int64_t> positions_of(const PackedBatch& batch) {
  std::vector<std::int64_t> positions(batch.tokens.size());
  for (const Segment& segment : batch.segments) {
    const std::int64_t start =
        segment.prefix < 0 ? 0 : batch.segments[static_cast<std::size_t>(segment.prefix)].length;
    for (std::int64_t i = 0; i < segment.length; ++i)
      positions[static_cast<std::size_t>(segment.begin + i)] = start + i;
  }
  return positions;
}

at::Tensor int64_tensor(const std::vector<std::int64_t>& values) { return at::tensor(values, at::kLong); }
at::Tensor int64_tensor(const std::vector<Token>& values) {
  return int64_tensor(std::vector<std::int64_t>(values.begin(), values.end()));
}

constexpr std::pair<const char*, at::Tensor LayerWeights::*> kOfLayer[] = {
    {"attention_norm", &LayerWeights::attention_norm},
    {"qkv", &LayerWeights::qkv},
    {"qkv_bias", &LayerWeights::qkv_bias},
    {"q_norm", &LayerWeights::q_norm},
    {"k_norm", &LayerWeights::k_norm},
    {"attention_out", &LayerWeights::attention_out},
    {"mlp_norm", &LayerWeights::mlp_norm},
    {"gate_up", &LayerWeights::gate_up},
    {"down", &LayerWeights::down}};

// Queries and keys of `qkv`, each head normed by itself.
at::Tensor norm_heads(const at::Tensor& qkv, const LayerWeights& w, const DecoderSettings& s) {
  const std::int64_t d = s.head_dim(), rows = qkv.size(0);
  const auto part = [&](std::int64_t first, std::int64_t heads, const at::Tensor& weight) {
    const at::Tensor heads_of = qkv.narrow(1, first * d, heads * d).reshape({rows * heads, d});
    return rms_norm(heads_of, weight, s.norm_epsilon).view({rows, heads * d});
  };
  return at::cat({part(0, s.heads, w.q_norm), part(s.heads, s.kv_heads, w.k_norm),
                  qkv.narrow(1, (s.heads + s.kv_heads) * d, s.kv_heads * d)},
                 1);
}

}  // namespace

at::Tensor qkv_of(const at::Tensor& x, const LayerWeights& w, const DecoderSettings& s) {
  const at::Tensor qkv = at::linear(rms_norm(x, w.attention_norm, s.norm_epsilon), w.qkv, w.qkv_bias);
  return s.qk_norm ? norm_heads(qkv, w, s) : qkv;
}

void append_group(PackedBatch& batch, const std::vector<Token>& prompt,
                  const std::vector<std::vector<Token>>& completions) {
  const auto size = [&] { return static_cast<std::int64_t>(batch.tokens.size()); };
  const auto prefix = static_cast<std::int64_t>(batch.segments.size());
  batch.segments.push_back({size(), static_cast<std::int64_t>(prompt.size()), -1});
  batch.tokens.insert(batch.tokens.end(), prompt.begin(), prompt.end());
  const std::int64_t last = size() - 1;
  for (const std::vector<Token>& completion : completions) {
    if (completion.empty()) continue;
    const std::int64_t begin = size();
    // The last token is only asked for, never attended to.
    batch.tokens.insert(batch.tokens.end(), completion.begin(), completion.end() - 1);
    if (size() > begin) batch.segments.push_back({begin, size() - begin, prefix});
    for (std::size_t i = 0; i < completion.size(); ++i)
      batch.rows.push_back(i == 0 ? last : begin + static_cast<std::int64_t>(i) - 1);
    batch.targets.insert(batch.targets.end(), completion.begin(), completion.end());
  }
}

void append_sequence(PackedBatch& batch, const std::vector<Token>& prompt,
                     const std::vector<Token>& completion) {
  if (completion.empty()) return;
  const auto begin = static_cast<std::int64_t>(batch.tokens.size());
  const auto length = static_cast<std::int64_t>(prompt.size() + completion.size()) - 1;
  batch.segments.push_back({begin, length, -1});
  batch.tokens.insert(batch.tokens.end(), prompt.begin(), prompt.end());
  batch.tokens.insert(batch.tokens.end(), completion.begin(), completion.end() - 1);
  for (std::size_t i = 0; i < completion.size(); ++i)
    batch.rows.push_back(begin + static_cast<std::int64_t>(prompt.size() + i) - 1);
  batch.targets.insert(batch.targets.end(), completion.begin(), completion.end());
}

Decoder::Decoder(const DecoderSettings& settings, at::ScalarType dtype) : settings_(settings) {
  const DecoderSettings& s = settings_;
  layers_.resize(static_cast<std::size_t>(s.layers));
  const std::vector<ParameterShape> parameters = parameters_of(s);
  std::int64_t total = 0;
  const auto padded = [](std::int64_t n) { return (n + 15) / 16 * 16; };
  for (const ParameterShape& one : parameters) total += padded(c10::multiply_integers(one.shape));
  flat_ = at::zeros({total}, dtype);
  gradient_ = at::zeros({total}, dtype);
  std::int64_t offset = 0;
  for (const ParameterShape& one : parameters) {
    const std::int64_t n = c10::multiply_integers(one.shape);
    at::Tensor& tensor = slot(one.name);
    tensor = flat_.narrow(0, offset, n).view(one.shape).detach();
    tensor.requires_grad_(true);
    tensor.mutable_grad() = gradient_.narrow(0, offset, n).view(one.shape).detach();
    named_.push_back({one.name, tensor, one.shape.size() > 1});
    offset += padded(n);
  }

  const std::int64_t half = s.head_dim() / 2;
  at::Tensor cosine = at::empty({s.context, half}, at::kDouble), sine = at::empty_like(cosine);
  const std::vector<double> frequencies = rotary_frequencies(s);
  const double factor = s.rope_scaling.attention_factor;
  for (std::int64_t position = 0; position < s.context; ++position)
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * frequencies[static_cast<std::size_t>(i)];
      cosine.mutable_data_ptr<double>()[position * half + i] = factor * std::cos(angle);
      sine.mutable_data_ptr<double>()[position * half + i] = factor * std::sin(angle);
    }
  cosine_ = cosine.to(dtype);
  sine_ = sine.to(dtype);
}

at::Tensor& Decoder::slot(const std::string& name) {
  if (name == "embedding") return embedding_;
  if (name == "final_norm") return final_norm_;
  if (name == "head") return head_;
  const std::size_t dot = name.rfind('.');
  LayerWeights& layer = layers_[std::stoul(name.substr(name.find('.') + 1))];
  const auto found = std::find_if(std::begin(kOfLayer), std::end(kOfLayer),
                                  [&](const auto& one) { return name.substr(dot + 1) == one.first; });
  return layer.*found->second;
}

void Decoder::initialise(std::uint64_t seed) {
  const double residual = 1.0 / std::sqrt(2.0 * static_cast<double>(settings_.layers));
  for (const NamedTensor& parameter : named_) {
    const bool norm = parameter.name.ends_with("norm"), bias = parameter.name.ends_with("bias");
    double deviation = norm || bias ? 0 : settings_.init_deviation;
    if (parameter.name.ends_with("attention_out") || parameter.name.ends_with("down")) deviation *= residual;
    Random random(random_key({seed, name_key("initialise"), name_key(parameter.name)}));
    AT_DISPATCH_FLOATING_TYPES(flat_.scalar_type(), "initialise", [&] {
      scalar_t* out = parameter.tensor.mutable_data_ptr<scalar_t>();
      for (std::int64_t i = 0; i < parameter.tensor.numel(); ++i)
        out[i] = static_cast<scalar_t>(norm ? 1.0 : deviation > 0 ? deviation * random.normal() : 0.0);
    });
  }
}

void Decoder::zero_gradient() { gradient_.zero_(); }

at::Tensor Decoder::logits(const PackedBatch& batch) const {
  const DecoderSettings& s = settings_;
  const HeadShape shape{s.heads, s.kv_heads, s.head_dim()};
  for (const Token token : batch.tokens)
    if (token < 0 || token >= s.vocabulary)
      throw Error("token " + std::to_string(token) + " is not in the vocabulary");
  const std::vector<std::int64_t> position_list = positions_of(batch);
  for (const std::int64_t position : position_list)
    if (position >= s.context)
      throw Error("a sequence of more than " + std::to_string(s.context) + " tokens (the model's context)");
  const at::Tensor positions = int64_tensor(position_list), rows = int64_tensor(batch.rows);

  at::Tensor x = at::embedding(embedding_, int64_tensor(batch.tokens));  // [tokens, width]
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const LayerWeights& w = layers_[l];
    const at::Tensor qkv = qkv_of(x, w, s);
    at::Tensor attended = attention(qkv, positions, cosine_, sine_, batch.segments, shape);
    if (l + 1 == layers_.size()) {  // behind the last attention only the rows that are asked for matter
      attended = attended.index_select(0, rows);
      x = x.index_select(0, rows);
    }
    x = at::addmm(x, attended, w.attention_out.t());
    const at::Tensor gate_up = at::linear(rms_norm(x, w.mlp_norm, s.norm_epsilon), w.gate_up);
    x = at::addmm(x, swiglu(gate_up), w.down.t());
  }
  return at::linear(rms_norm(x, final_norm_, s.norm_epsilon), head());
}

at::Tensor Decoder::log_probabilities(const PackedBatch& batch) const {
  return at::log_softmax(logits(batch), -1).gather(1, int64_tensor(batch.targets).unsqueeze(1)).squeeze(1);
}

}  // namespace warpsmith::model

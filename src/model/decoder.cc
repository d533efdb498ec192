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
#include <numbers>
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

void require(bool condition, const std::string& message) {
  if (!condition) throw Error("model settings: " + message, kExitUsage);
}

}  // namespace

namespace {

constexpr std::pair<RopeScaling::Kind, const char*> kRopeKinds[] = {{RopeScaling::Kind::kNone, "none"},
                                                                    {RopeScaling::Kind::kLinear, "linear"},
                                                                    {RopeScaling::Kind::kLlama3, "llama3"},
                                                                    {RopeScaling::Kind::kYarn, "yarn"}};

Json to_json(const RopeScaling& r) {
  const auto kind = std::find_if(std::begin(kRopeKinds), std::end(kRopeKinds),
                                 [&](const auto& one) { return one.first == r.kind; });
  return {{"kind", kind->second},
          {"factor", r.factor},
          {"original_context", r.original_context},
          {"low_frequency", r.low_frequency},
          {"high_frequency", r.high_frequency},
          {"beta_fast", r.beta_fast},
          {"beta_slow", r.beta_slow},
          {"attention_factor", r.attention_factor},
          {"truncate", r.truncate}};
}

RopeScaling rope_scaling_from_json(const Json& json) {
  constexpr const char* kWhat = "model settings: rope_scaling";
  RopeScaling r;
  const auto name = json_at<std::string>(json, "kind", kWhat);
  const auto kind = std::find_if(std::begin(kRopeKinds), std::end(kRopeKinds),
                                 [&](const auto& one) { return one.second == name; });
  require(kind != std::end(kRopeKinds), "rope_scaling: `" + name + "` is not known");
  r.kind = kind->first;
  r.factor = json_at<double>(json, "factor", kWhat);
  r.original_context = json_at<double>(json, "original_context", kWhat);
  r.low_frequency = json_at<double>(json, "low_frequency", kWhat);
  r.high_frequency = json_at<double>(json, "high_frequency", kWhat);
  r.beta_fast = json_at<double>(json, "beta_fast", kWhat);
  r.beta_slow = json_at<double>(json, "beta_slow", kWhat);
  r.attention_factor = json_at<double>(json, "attention_factor", kWhat);
  r.truncate = json_at<bool>(json, "truncate", kWhat);
  require(r.factor > 0 && r.attention_factor > 0, "rope_scaling: factors must be positive");
  return r;
}

// Radians a position, for each pair of a head's elements.
std::vector<double> rotary_frequencies(const DecoderSettings& s) {
  const RopeScaling& r = s.rope_scaling;
  const std::int64_t half = s.head_dim() / 2;
  const auto dim = static_cast<double>(s.head_dim());
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < half; ++i)
    frequencies.push_back(std::pow(s.rope_base, -static_cast<double>(2 * i) / dim));
  // The element whose wave turns so often within the original context.
  const auto element_of = [&](double turns) {
    return dim * std::log(r.original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(s.rope_base));
  };
  double low = 0, high = 0;
  if (r.kind == RopeScaling::Kind::kYarn) {
    low = element_of(r.beta_fast);
    high = element_of(r.beta_slow);
    if (r.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, dim - 1);
    if (low == high) high += 0.001;
  }
  for (std::int64_t i = 0; i < half; ++i) {
    double& own = frequencies[static_cast<std::size_t>(i)];
    const double slower = own / r.factor;
    switch (r.kind) {
      case RopeScaling::Kind::kNone:
        break;
      case RopeScaling::Kind::kLinear:
        own = slower;
        break;
      case RopeScaling::Kind::kLlama3: {
        const double turns = r.original_context * own / (2 * std::numbers::pi);
        const double share =
            std::clamp((turns - r.low_frequency) / (r.high_frequency - r.low_frequency), 0.0, 1.0);
        own = share * own + (1 - share) * slower;
        break;
      }
      case RopeScaling::Kind::kYarn: {
        const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
        own = ramp * slower + (1 - ramp) * own;
        break;
      }
    }
  }
  return frequencies;
}

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

Json to_json(const DecoderSettings& s) {
  Json json = {{"layers", s.layers},
               {"width", s.width},
               {"heads", s.heads},
               {"kv_heads", s.kv_heads},
               {"hidden", s.hidden},
               {"context", s.context},
               {"vocabulary", s.vocabulary},
               {"rope_base", s.rope_base},
               {"norm_epsilon", s.norm_epsilon},
               {"qkv_bias", s.qkv_bias},
               {"init_deviation", s.init_deviation}};
  // Only where they are not what every model had before they came.
  const DecoderSettings plain;
  if (s.tied != plain.tied) json["tied"] = s.tied;
  if (s.qk_norm != plain.qk_norm) json["qk_norm"] = s.qk_norm;
  if (s.head_size != plain.head_size) json["head_size"] = s.head_size;
  if (s.rope_scaling != plain.rope_scaling) json["rope_scaling"] = to_json(s.rope_scaling);
  return json;
}

DecoderSettings decoder_settings_from_json(const Json& json) {
  DecoderSettings s;
  const auto take = [&](const char* key, auto& value) {
    if (json.contains(key)) value = json_at<std::decay_t<decltype(value)>>(json, key, "model settings");
  };
  take("layers", s.layers);
  take("width", s.width);
  take("heads", s.heads);
  take("kv_heads", s.kv_heads);
  take("hidden", s.hidden);
  take("context", s.context);
  take("vocabulary", s.vocabulary);
  take("rope_base", s.rope_base);
  take("norm_epsilon", s.norm_epsilon);
  take("init_deviation", s.init_deviation);
  take("qkv_bias", s.qkv_bias);
  take("tied", s.tied);
  take("qk_norm", s.qk_norm);
  take("head_size", s.head_size);
  if (json.contains("rope_scaling")) s.rope_scaling = rope_scaling_from_json(json["rope_scaling"]);
  require(s.layers > 0 && s.width > 0 && s.heads > 0 && s.kv_heads > 0 && s.hidden > 0 && s.context > 1,
          "sizes must be positive");
  require(s.head_size > 0 || s.width % s.heads == 0, "width must be an even multiple of heads");
  require(s.head_size >= 0 && s.head_dim() % 2 == 0, "width must be an even multiple of heads");
  require(s.heads % s.kv_heads == 0, "heads must be a multiple of kv_heads");
  require(s.vocabulary >= kFirstMerge, "vocabulary must be at least " + std::to_string(kFirstMerge));
  return s;
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
  struct Slot {
    std::string name;
    std::vector<std::int64_t> shape;
    at::Tensor* tensor;
  };
  layers_.resize(static_cast<std::size_t>(s.layers));
  std::vector<Slot> slots = {{"embedding", {s.vocabulary, s.width}, &embedding_}};
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const std::string prefix = "layers." + std::to_string(l) + ".";
    LayerWeights& layer = layers_[l];
    slots.push_back({prefix + "attention_norm", {s.width}, &layer.attention_norm});
    slots.push_back({prefix + "qkv", {s.qkv_width(), s.width}, &layer.qkv});
    if (s.qkv_bias) slots.push_back({prefix + "qkv_bias", {s.qkv_width()}, &layer.qkv_bias});
    if (s.qk_norm) {
      slots.push_back({prefix + "q_norm", {s.head_dim()}, &layer.q_norm});
      slots.push_back({prefix + "k_norm", {s.head_dim()}, &layer.k_norm});
    }
    slots.push_back({prefix + "attention_out", {s.width, s.attention_width()}, &layer.attention_out});
    slots.push_back({prefix + "mlp_norm", {s.width}, &layer.mlp_norm});
    slots.push_back({prefix + "gate_up", {2 * s.hidden, s.width}, &layer.gate_up});
    slots.push_back({prefix + "down", {s.width, s.hidden}, &layer.down});
  }
  slots.push_back({"final_norm", {s.width}, &final_norm_});
  if (!s.tied) slots.push_back({"head", {s.vocabulary, s.width}, &head_});

  std::int64_t total = 0;
  const auto padded = [](std::int64_t n) { return (n + 15) / 16 * 16; };
  for (const Slot& slot : slots) total += padded(c10::multiply_integers(slot.shape));
  flat_ = at::zeros({total}, dtype);
  gradient_ = at::zeros({total}, dtype);
  std::int64_t offset = 0;
  for (const Slot& slot : slots) {
    const std::int64_t n = c10::multiply_integers(slot.shape);
    *slot.tensor = flat_.narrow(0, offset, n).view(slot.shape).detach();
    slot.tensor->requires_grad_(true);
    slot.tensor->mutable_grad() = gradient_.narrow(0, offset, n).view(slot.shape).detach();
    named_.push_back({slot.name, *slot.tensor, slot.shape.size() > 1});
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

#include "warpsmith/model/decoder.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>

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

Json to_json(const DecoderSettings& s) {
  return {{"layers", s.layers},
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
  require(s.layers > 0 && s.width > 0 && s.heads > 0 && s.kv_heads > 0 && s.hidden > 0 && s.context > 1,
          "sizes must be positive");
  require(s.width % s.heads == 0 && s.head_dim() % 2 == 0, "width must be an even multiple of heads");
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
    slots.push_back({prefix + "attention_out", {s.width, s.width}, &layer.attention_out});
    slots.push_back({prefix + "mlp_norm", {s.width}, &layer.mlp_norm});
    slots.push_back({prefix + "gate_up", {2 * s.hidden, s.width}, &layer.gate_up});
    slots.push_back({prefix + "down", {s.width, s.hidden}, &layer.down});
  }
  slots.push_back({"final_norm", {s.width}, &final_norm_});

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
  for (std::int64_t position = 0; position < s.context; ++position)
    for (std::int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(s.rope_base, -static_cast<double>(i) / static_cast<double>(half));
      const double angle = static_cast<double>(position) * frequency;
      cosine.mutable_data_ptr<double>()[position * half + i] = std::cos(angle);
      sine.mutable_data_ptr<double>()[position * half + i] = std::sin(angle);
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
    const at::Tensor qkv = at::linear(rms_norm(x, w.attention_norm, s.norm_epsilon), w.qkv, w.qkv_bias);
    at::Tensor attended = attention(qkv, positions, cosine_, sine_, batch.segments, shape);
    if (l + 1 == layers_.size()) {  // behind the last attention only the rows that are asked for matter
      attended = attended.index_select(0, rows);
      x = x.index_select(0, rows);
    }
    x = at::addmm(x, attended, w.attention_out.t());
    const at::Tensor gate_up = at::linear(rms_norm(x, w.mlp_norm, s.norm_epsilon), w.gate_up);
    x = at::addmm(x, swiglu(gate_up), w.down.t());
  }
  return at::linear(rms_norm(x, final_norm_, s.norm_epsilon), embedding_);
}

at::Tensor Decoder::log_probabilities(const PackedBatch& batch) const {
  return at::log_softmax(logits(batch), -1).gather(1, int64_tensor(batch.targets).unsqueeze(1)).squeeze(1);
}

}  // namespace warpsmith::model

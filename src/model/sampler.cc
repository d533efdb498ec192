#include "warpsmith/model/sampler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "functions.h"
#include "loops.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"
#include "warpsmith/model/kernels.h"
#include "wave.h"

namespace warpsmith::model {

namespace {

// Keys and values of one layer.
struct LayerCache {
  // Of the prompt, as rows of its qkv: [prompt, qkv_width].
  at::Tensor prompt;
  // Of the samples, by key head h and sample s. Keys lie transposed, so that scores of neighbouring positions
  // are neighbours: keys [kv_heads, samples, head_dim, length], values [kv_heads, samples, length, head_dim].
  std::vector<float> keys, values;
};

// One call's state: buffers are made once, a step allocates nothing but a few tensor headers.
class Batch {
 public:
  Batch(const Decoder& decoder, std::span<const Token> prompt, std::int64_t samples, std::int64_t length);
  // Logits behind the prompt: [vocabulary].
  const at::Tensor& prompt_logits() const { return prompt_logits_; }
  // Runs one token of each living sample, at `position` of its completion; living[i] is the sample in row i.
  // Logits: [living, vocabulary].
  const at::Tensor& step(const std::vector<Token>& tokens, const std::vector<std::int64_t>& living,
                         std::int64_t position);

 private:
  void prefill(std::span<const Token> prompt);
  void norm_heads(float* qkv, std::int64_t rows, const LayerWeights& weights);
  void attend(std::size_t layer, const std::vector<std::int64_t>& living, std::int64_t position);
  at::Tensor rows(const at::Tensor& buffer, std::int64_t n) const { return buffer.narrow(0, 0, n); }

  const Decoder& decoder_;
  const DecoderSettings& settings_;
  HeadShape shape_;
  std::int64_t samples_, length_, prompt_length_;
  std::vector<LayerCache> cache_;
  at::Tensor prompt_logits_;
  at::Tensor x_, normed_, inverse_, qkv_, attended_, gate_up_, hidden_, logits_;  // [samples, …]
  at::Tensor heads_;                     // of one row: [heads, head_dim]
  at::Tensor queries_, scores_, mixed_;  // of one key head: [samples * group, head_dim | keys | head_dim]
  at::Tensor logits_view_;
  std::vector<std::int64_t> positions_;
};

Batch::Batch(const Decoder& decoder, std::span<const Token> prompt, std::int64_t samples, std::int64_t length)
    : decoder_(decoder),
      settings_(decoder.settings()),
      shape_{settings_.heads, settings_.kv_heads, settings_.head_dim()},
      samples_(samples),
      length_(length),
      prompt_length_(static_cast<std::int64_t>(prompt.size())) {
  const DecoderSettings& s = settings_;
  const auto buffer = [](std::int64_t rows, std::int64_t columns) {
    return at::empty({rows, columns}, at::kFloat);
  };
  x_ = buffer(samples, s.width);
  normed_ = buffer(samples, s.width);
  inverse_ = buffer(samples, 1);
  qkv_ = buffer(samples, s.qkv_width());
  attended_ = buffer(samples, s.attention_width());
  heads_ = buffer(s.heads, s.head_dim());
  gate_up_ = buffer(samples, 2 * s.hidden);
  hidden_ = buffer(samples, s.hidden);
  logits_ = buffer(samples, s.vocabulary);
  const std::int64_t group = s.heads / s.kv_heads;
  queries_ = buffer(samples * group, s.head_dim());
  scores_ = buffer(samples * group, (prompt_length_ + length + 15) / 16 * 16);
  mixed_ = buffer(samples * group, s.head_dim());
  positions_.resize(static_cast<std::size_t>(samples));
  cache_.resize(static_cast<std::size_t>(s.layers));
  const auto own = static_cast<std::size_t>(s.kv_heads * samples * length * s.head_dim());
  for (LayerCache& cache : cache_) {
    cache.keys.resize(own);
    cache.values.resize(own);
  }
  prefill(prompt);
}

void Batch::prefill(std::span<const Token> prompt) {
  const DecoderSettings& s = settings_;
  std::vector<std::int64_t> list(prompt.size());
  std::iota(list.begin(), list.end(), 0);
  const at::Tensor positions = at::tensor(list, at::kLong);
  std::copy(prompt.begin(), prompt.end(), list.begin());
  const std::vector<Segment> segments = {{0, prompt_length_, -1}};
  at::Tensor x = at::embedding(decoder_.embedding(), at::tensor(list, at::kLong));
  for (std::size_t l = 0; l < cache_.size(); ++l) {
    const LayerWeights& w = decoder_.layers()[l];
    at::Tensor qkv = qkv_of(norm(x, w.attention_norm, {}, s, Backend::kLoops), w, s, Backend::kLoops);
    loops::rotate_rows(qkv, positions, decoder_.cosine(), decoder_.sine(), shape_, 1);
    at::Tensor attended = at::empty({prompt_length_, s.attention_width()}, at::kFloat);
    at::Tensor log_sums = at::empty({s.heads, prompt_length_}, at::kFloat);
    loops::attention_forward(qkv, segments, shape_, attended, log_sums);
    cache_[l].prompt = qkv;
    if (l + 1 == cache_.size()) {
      attended = attended.narrow(0, prompt_length_ - 1, 1);
      x = x.narrow(0, prompt_length_ - 1, 1);
    }
    x = behind_attention(x, attended, w, s, Backend::kLoops);
  }
  prompt_logits_ = at::linear(decoder_.normed(x), decoder_.head());
}

const at::Tensor& Batch::step(const std::vector<Token>& tokens, const std::vector<std::int64_t>& living,
                              std::int64_t position) {
  const DecoderSettings& s = settings_;
  const Kernels<float>& k = kernels<float>();
  const auto n = static_cast<std::int64_t>(living.size());
  at::Tensor x = rows(x_, n), normed = rows(normed_, n), qkv = rows(qkv_, n), attended = rows(attended_, n),
             gate_up = rows(gate_up_, n), hidden = rows(hidden_, n);
  float* x_data = x.mutable_data_ptr<float>();
  float* normed_data = normed.mutable_data_ptr<float>();
  const auto norm = [&](const at::Tensor& weight) {
    k.rms_norm(x_data, weight.const_data_ptr<float>(), normed_data, inverse_.mutable_data_ptr<float>(), n,
               s.width, s.norm_epsilon);
  };
  const float* embedding = decoder_.embedding().const_data_ptr<float>();
  for (std::int64_t i = 0; i < n; ++i)
    std::copy_n(embedding + tokens[static_cast<std::size_t>(i)] * s.width, s.width, x_data + i * s.width);
  std::fill_n(positions_.begin(), n, prompt_length_ + position);

  for (std::size_t l = 0; l < cache_.size(); ++l) {
    const LayerWeights& w = decoder_.layers()[l];
    norm(w.attention_norm);
    if (w.qkv_bias.defined())
      at::addmm_out(qkv, w.qkv_bias, normed, w.qkv.t());
    else
      at::mm_out(qkv, normed, w.qkv.t());
    if (s.qk_norm) norm_heads(qkv.mutable_data_ptr<float>(), n, w);
    k.rotate(qkv.mutable_data_ptr<float>(), s.qkv_width(), n, s.heads + s.kv_heads, s.head_dim(),
             positions_.data(), decoder_.cosine().const_data_ptr<float>(),
             decoder_.sine().const_data_ptr<float>(), 1);
    attend(l, living, position);
    at::addmm_out(x, x, attended, w.attention_out.t());
    norm(w.mlp_norm);
    at::mm_out(gate_up, normed, w.gate_up.t());
    k.swiglu(gate_up.const_data_ptr<float>(), hidden.mutable_data_ptr<float>(), n, s.hidden);
    at::addmm_out(x, x, hidden, w.down.t());
  }
  norm(decoder_.final_norm());
  logits_view_ = rows(logits_, n);
  at::mm_out(logits_view_, normed, decoder_.head().t());
  return logits_view_;
}

// Queries and keys of each row, head by head.
void Batch::norm_heads(float* qkv, std::int64_t rows, const LayerWeights& weights) {
  const DecoderSettings& s = settings_;
  const std::int64_t d = s.head_dim();
  float* normed = heads_.mutable_data_ptr<float>();
  std::vector<float> inverse(static_cast<std::size_t>(s.heads));
  for (std::int64_t row = 0; row < rows; ++row) {
    float* at = qkv + row * s.qkv_width();
    for (const auto& [weight, heads] : {std::pair(&weights.q_norm, s.heads), {&weights.k_norm, s.kv_heads}}) {
      kernels<float>().rms_norm(at, weight->const_data_ptr<float>(), normed, inverse.data(), heads, d,
                                s.norm_epsilon);
      at = std::copy_n(normed, heads * d, at);
    }
  }
}

// attended_ = attention of each living sample's query over the prompt and its own positions [0, position].
void Batch::attend(std::size_t layer, const std::vector<std::int64_t>& living, std::int64_t position) {
  const Kernels<float>& k = kernels<float>();
  LayerCache& cache = cache_[layer];
  const std::int64_t d = shape_.head_dim, group = shape_.heads / shape_.kv_heads,
                     width = settings_.qkv_width();
  const std::int64_t own = position + 1, keys = prompt_length_ + own, stride = scores_.stride(0);
  const auto n = static_cast<std::int64_t>(living.size());
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d)));
  const float* qkv = qkv_.const_data_ptr<float>();
  float* queries = queries_.mutable_data_ptr<float>();
  float* scores = scores_.mutable_data_ptr<float>();
  float* mixed = mixed_.mutable_data_ptr<float>();
  const at::Tensor query_rows = rows(queries_, n * group);
  at::Tensor prompt_scores = scores_.as_strided({n * group, prompt_length_}, {stride, 1}, 0);
  at::Tensor mixed_rows = rows(mixed_, n * group);
  for (std::int64_t h = 0; h < shape_.kv_heads; ++h) {
    const std::int64_t key_column = (shape_.heads + h) * d, value_column = key_column + shape_.kv_heads * d;
    const auto of_prompt = [&](std::int64_t column) {
      return cache.prompt.as_strided({prompt_length_, d}, {width, 1}, cache.prompt.storage_offset() + column);
    };
    const auto own_at = [&](std::int64_t i) {
      return (h * samples_ + living[static_cast<std::size_t>(i)]) * length_ * d;
    };
    for (std::int64_t i = 0; i < n; ++i)
      std::copy_n(qkv + i * width + h * group * d, group * d, queries + i * group * d);
    at::mm_out(prompt_scores, query_rows, of_prompt(key_column).t());
    for (std::int64_t i = 0; i < n; ++i) {
      float* own_keys = cache.keys.data() + own_at(i);
      for (std::int64_t c = 0; c < d; ++c) own_keys[c * length_ + position] = qkv[i * width + key_column + c];
      std::copy_n(qkv + i * width + value_column, d, cache.values.data() + own_at(i) + position * d);
      for (std::int64_t j = i * group; j < (i + 1) * group; ++j) {
        float* row = scores + j * stride;
        std::fill_n(row + prompt_length_, own, 0.0f);
        k.add_vector_matrix(queries + j * d, own_keys, length_, d, own, row + prompt_length_);
        float largest = 0;
        k.multiply(row, keys, 1.0f / k.exponentials(row, keys, keys, scale, largest));
      }
    }
    at::mm_out(mixed_rows, prompt_scores, of_prompt(value_column));
    for (std::int64_t i = 0; i < n; ++i) {
      const float* values = cache.values.data() + own_at(i);
      for (std::int64_t j = i * group; j < (i + 1) * group; ++j)
        k.add_vector_matrix(scores + j * stride + prompt_length_, values, d, own, d, mixed + j * d);
      std::copy_n(mixed + i * group * d, group * d,
                  attended_.mutable_data_ptr<float>() + i * settings_.attention_width() + h * group * d);
    }
  }
}

void check(const SamplerSettings& s) {
  const auto require = [](bool condition, const std::string& message) {
    if (!condition) throw Error("sampling: " + message, kExitUsage);
  };
  require(s.temperature >= 0 && std::isfinite(s.temperature), "temperature must be at least 0");
  require(s.top_p > 0 && s.top_p <= 1, "top_p must be in (0, 1]");
  require(s.top_k >= 0, "top_k must be at least 0");
  require(s.max_tokens > 0 && s.batch > 0, "max_tokens and batch must be positive");
}

// log softmax(logits)[token], in double: the sum over a large vocabulary keeps its last digits.
float log_probability(std::span<const float> logits, Token token) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - largest));
  return static_cast<float>(static_cast<double>(logits[static_cast<std::size_t>(token)] - largest) -
                            std::log(sum));
}

// Samples of one batch: all start at the prompt; those that end leave.
void sample_batch(const Decoder& decoder, std::span<const Token> prompt, std::span<const std::uint64_t> keys,
                  const SamplerSettings& settings, std::span<Sample> out) {
  const auto prompt_length = static_cast<std::int64_t>(prompt.size());
  const std::int64_t most = std::min(settings.max_tokens, decoder.settings().context - prompt_length);
  if (most <= 0) return;
  const auto vocabulary = static_cast<std::size_t>(decoder.settings().vocabulary);
  Batch batch(decoder, prompt, static_cast<std::int64_t>(keys.size()), most);
  std::vector<Random> randoms(keys.begin(), keys.end());
  std::vector<std::int64_t> living(keys.size());
  std::iota(living.begin(), living.end(), 0);
  std::vector<Token> tokens;
  const float* logits = batch.prompt_logits().const_data_ptr<float>();
  for (std::int64_t position = 0;; ++position) {
    std::vector<std::int64_t> still;
    tokens.clear();
    for (std::size_t i = 0; i < living.size(); ++i) {
      const auto s = static_cast<std::size_t>(living[i]);
      const std::span<const float> row(logits + (position == 0 ? 0 : i * vocabulary), vocabulary);
      const Token token = pick_token(row, settings, randoms[s].uniform());
      out[s].tokens.push_back(token);
      out[s].log_probabilities.push_back(log_probability(row, token));
      out[s].finished =
          std::find(settings.stops.begin(), settings.stops.end(), token) != settings.stops.end();
      if (out[s].finished) continue;
      still.push_back(living[i]);
      tokens.push_back(token);
    }
    living = std::move(still);
    if (living.empty() || position + 1 == most) return;
    logits = batch.step(tokens, living, position).const_data_ptr<float>();
  }
}

}  // namespace

Token pick_token(std::span<const float> logits, const SamplerSettings& settings, double uniform) {
  const std::size_t n = logits.size();
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (settings.temperature == 0) return static_cast<Token>(largest - logits.begin());
  thread_local std::vector<double> weights;
  thread_local std::vector<std::size_t> order;
  weights.resize(n);
  double total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    weights[i] = std::exp(static_cast<double>(logits[i] - *largest) / settings.temperature);
    total += weights[i];
  }
  if (settings.top_k > 0 || settings.top_p < 1) {
    // Most probable first; of equal ones the smaller id.
    order.resize(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
    double kept = 0;
    const std::size_t most = settings.top_k > 0 ? std::min(n, static_cast<std::size_t>(settings.top_k)) : n;
    std::size_t count = 0;
    while (count < most && (count == 0 || kept < settings.top_p * total)) kept += weights[order[count++]];
    for (std::size_t i = count; i < n; ++i) weights[order[i]] = 0;
    total = kept;
  }
  double left = uniform * total;
  std::size_t last = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (weights[i] == 0) continue;
    last = i;
    if (left < weights[i]) break;
    left -= weights[i];
  }
  return static_cast<Token>(last);
}

std::vector<Sample> sample(const Decoder& decoder, std::span<const Token> prompt,
                           std::span<const std::uint64_t> keys, const SamplerSettings& settings) {
  check(settings);
  if (prompt.empty()) throw Error("sampling: an empty prompt");
  if (decoder.backend() != Backend::kLoops || decoder.settings().lora.rank > 0)
    throw Error("sampling by the loops: a plain decoder of theirs, without adapters, is wanted");
  const at::NoGradGuard guard;
  std::vector<Sample> samples(keys.size());
  const auto batch = static_cast<std::size_t>(settings.batch);
  for (std::size_t begin = 0; begin < keys.size(); begin += batch) {
    const std::size_t count = std::min(batch, keys.size() - begin);
    sample_batch(decoder, prompt, keys.subspan(begin, count), settings,
                 std::span(samples).subspan(begin, count));
  }
  return samples;
}

std::vector<std::vector<Sample>> sample_all(const Decoder& decoder, std::span<const SampleRequest> requests,
                                            const SamplerSettings& settings) {
  std::vector<std::vector<Sample>> samples;
  if (decoder.backend() == Backend::kLoops) {
    for (const SampleRequest& request : requests)
      samples.push_back(sample(decoder, request.prompt, request.keys, settings));
    return samples;
  }
  check(settings);
  std::vector<Draw> draws;
  samples.resize(requests.size());
  for (std::size_t r = 0; r < requests.size(); ++r) {
    if (requests[r].prompt.empty()) throw Error("sampling: an empty prompt");
    samples[r].resize(requests[r].keys.size());
    for (std::size_t i = 0; i < samples[r].size(); ++i)
      draws.push_back({&requests[r].prompt, requests[r].keys[i], &samples[r][i]});
  }
  const auto wave = static_cast<std::size_t>(settings.batch);
  for (std::size_t begin = 0; begin < draws.size(); begin += wave)
    sample_wave(decoder, std::span(draws).subspan(begin, std::min(wave, draws.size() - begin)), settings);
  return samples;
}

}  // namespace warpsmith::model

#include "wave.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isin.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <memory>

#include "functions.h"
#include "operators.h"
#include "warpsmith/base/random.h"
#include "warpsmith/model/fused.h"

namespace warpsmith::model {

namespace {

constexpr std::int64_t kPrefillTokens = 16384;  // of prompts computed at a time, a prompt at least
constexpr std::int64_t kStepsBeforeRecording = 2;
constexpr std::int64_t kLookEvery = 16;  // steps between looks whether all samples have ended

// The tokens that uniform numbers in [0, 1) pick, row by row, as pick_token() does: logits [rows,
// vocabulary] float32, uniforms [rows] float64. Sums are float64 on a CPU and float32 on a GPU.
at::Tensor pick_tokens(const at::Tensor& logits, const SamplerSettings& settings,
                       const at::Tensor& uniforms) {
  const at::Tensor best = logits.argmax(-1);
  if (settings.temperature == 0) return best;
  const at::ScalarType type = logits.is_cuda() ? at::kFloat : at::kDouble;
  at::Tensor shares = at::softmax(logits.to(type) / settings.temperature, -1);
  if (settings.top_k > 0 || settings.top_p < 1) {
    // Most probable first; of equal ones the smaller id.
    auto [sorted, order] = at::sort(shares, true, -1, true);
    at::Tensor kept = (sorted.cumsum(-1) - sorted).lt(settings.top_p);
    kept.select(1, 0).fill_(true);
    if (settings.top_k > 0 && settings.top_k < kept.size(1))
      kept.narrow(1, settings.top_k, kept.size(1) - settings.top_k).fill_(false);
    shares = at::zeros(shares.sizes(), shares.options()).scatter_(1, order, sorted * kept);
  }
  const at::Tensor sums = shares.cumsum(-1), total = sums.narrow(1, sums.size(1) - 1, 1);
  const at::Tensor wanted = uniforms.to(type).unsqueeze(1) * total;
  const at::Tensor token = at::searchsorted(sums, wanted, false, true).squeeze(1);
  return at::where(token < logits.size(1), token, best);
}

// One wave: everything that a step reads and writes lies at one place from the first step to the last, so
// that a step can be recorded once and repeated.
class Wave {
 public:
  Wave(const Decoder& decoder, std::span<const Draw> draws, const SamplerSettings& settings);
  void run();

 private:
  void prefill();
  void step();
  void draw(const at::Tensor& logits);
  at::Tensor queries_of(std::size_t layer, Sum& x, const at::Tensor& places) const;
  bool ended() const;
  void deliver() const;
  std::int64_t count() const { return static_cast<std::int64_t>(draws_.size()); }
  at::Tensor numbers(const std::vector<std::int64_t>& values) const {
    return at::tensor(values, at::kLong).to(device_);
  }

  const Decoder& decoder_;
  const SamplerSettings& settings_;
  const DecoderSettings& shape_of_;
  const std::span<const Draw> draws_;
  const at::Device device_;
  std::int64_t most_ = 0, longest_prompt_ = 0;  // steps; tokens
  std::int64_t longest_ = 0;                    // places in use
  std::vector<std::int64_t> limits_;            // tokens of each sample at most
  std::vector<operators::Cache> caches_;        // of each layer
  at::Tensor first_places_, stops_;
  at::Tensor uniforms_;          // [steps, samples]
  at::Tensor number_;            // of the step, [1]
  at::Tensor token_, position_;  // of each sample: what the next step reads
  at::Tensor prompt_logits_;
  at::Tensor tokens_, log_probabilities_, ended_;  // [steps, samples]; ended_: [samples]
};

Wave::Wave(const Decoder& decoder, std::span<const Draw> draws, const SamplerSettings& settings)
    : decoder_(decoder),
      settings_(settings),
      shape_of_(decoder.settings()),
      draws_(draws),
      device_(decoder.flat().device()) {
  std::vector<std::int64_t> positions;
  for (const Draw& one : draws) {
    positions.push_back(static_cast<std::int64_t>(one.prompt->size()));
    limits_.push_back(std::min(settings.max_tokens, shape_of_.context - positions.back()));
    longest_prompt_ = std::max(longest_prompt_, positions.back());
    most_ = std::max(most_, limits_.back());
  }
  // Rounded up, so that waves of about the same length have the same shapes.
  const std::int64_t length = (longest_prompt_ + most_ + 63) / 64 * 64;
  const at::Tensor ends = at::arange(count() + 1, at::TensorOptions().device(device_).dtype(at::kInt));
  for (std::int64_t l = 0; l < shape_of_.layers; ++l) {
    const auto buffer = [&](std::int64_t size) {
      const std::int64_t heads = shape_of_.latent.kv_rank > 0 ? shape_of_.heads : shape_of_.kv_heads;
      return at::zeros({count() * length, heads, size}, decoder.options());
    };
    caches_.push_back(
        {buffer(shape_of_.head_dim()), buffer(shape_of_.value_dim()), length, ends, ends * length});
  }
  at::Tensor uniforms = at::empty({most_, count()}, at::kDouble);
  for (std::int64_t i = 0; i < count(); ++i) {
    Random random(draws[static_cast<std::size_t>(i)].key);
    for (std::int64_t t = 0; t < most_; ++t)
      uniforms.mutable_data_ptr<double>()[t * count() + i] = random.uniform();
  }
  const auto on_device = at::TensorOptions().device(device_);
  uniforms_ = uniforms.to(device_);
  first_places_ = at::arange(count(), on_device.dtype(at::kLong)) * length;
  stops_ = numbers({settings.stops.begin(), settings.stops.end()});
  number_ = at::zeros({1}, on_device.dtype(at::kLong));
  token_ = at::zeros({count()}, on_device.dtype(at::kLong));
  position_ = numbers(positions);
  tokens_ = at::zeros({most_, count()}, on_device.dtype(at::kLong));
  log_probabilities_ = at::zeros({most_, count()}, on_device.dtype(at::kFloat));
  ended_ = at::zeros({count()}, on_device.dtype(at::kBool));
}

// Each prompt once, some at a time; its keys and values go to all its samples.
void Wave::prefill() {
  std::map<std::vector<Token>, std::vector<std::int64_t>> samples_of;
  for (std::int64_t i = 0; i < count(); ++i)
    samples_of[*draws_[static_cast<std::size_t>(i)].prompt].push_back(i);
  prompt_logits_ = at::empty({count(), shape_of_.vocabulary}, decoder_.options());
  auto next = samples_of.begin();
  while (next != samples_of.end()) {
    PackedBatch batch;
    std::vector<std::int64_t> from, sample, place, last;  // copies of rows; logits
    std::int64_t number = 0;
    for (; next != samples_of.end(); ++next, ++number) {
      const auto& [prompt, samples] = *next;
      const auto begin = static_cast<std::int64_t>(batch.tokens.size());
      const auto length = static_cast<std::int64_t>(prompt.size());
      if (begin > 0 && begin + length > kPrefillTokens) break;
      batch.segments.push_back({begin, length, -1});
      batch.tokens.insert(batch.tokens.end(), prompt.begin(), prompt.end());
      batch.rows.push_back(begin + length - 1);
      for (const std::int64_t i : samples) {
        last.push_back(number);
        sample.push_back(i);
        for (std::int64_t p = 0; p < length; ++p) {
          from.push_back(begin + p);
          place.push_back(i * caches_[0].length + p);
        }
      }
    }
    const Packing packing = make_packing(batch, shape_of_, device_);
    const at::Tensor from_rows = numbers(from), to_places = numbers(place);
    at::Tensor x = at::embedding(decoder_.embedding(), packing.tokens);
    for (std::size_t l = 0; l < caches_.size(); ++l) {
      const LayerWeights& w = decoder_.layers()[l];
      const operators::Heads heads =
          heads_of_layer(x, w, shape_of_, packing.positions, decoder_.cosine(), decoder_.sine());
      caches_[l].keys.index_copy_(0, to_places, heads.keys.index_select(0, from_rows));
      caches_[l].values.index_copy_(0, to_places, heads.values.index_select(0, from_rows));
      at::Tensor attended = operators::attend(heads, packing, score_scale(shape_of_));
      if (l + 1 == caches_.size()) {
        attended = attended.index_select(0, packing.rows);
        x = x.index_select(0, packing.rows);
      }
      x = behind_attention(x, attended, w, shape_of_, Backend::kOperators);
    }
    x = decoder_.normed(x);
    const at::Tensor logits = at::linear(x, decoder_.head());
    prompt_logits_.index_copy_(0, numbers(sample), logits.index_select(0, numbers(last)));
  }
}

// Writes the next token of every sample: to its column, and to where the next step reads it.
void Wave::draw(const at::Tensor& narrow) {
  const Fused* const fused =
      settings_.top_k > 0 || settings_.top_p < 1 || narrow.size(1) % 8 != 0 ? nullptr : fused_for(narrow);
  if (fused != nullptr) {
    fused->draw(narrow, uniforms_, number_, settings_.temperature, token_, tokens_, log_probabilities_);
    ended_.logical_or_(at::isin(token_, stops_));
    number_.add_(1);
    return;
  }
  const at::Tensor logits = narrow.to(at::kFloat);
  token_.copy_(pick_tokens(logits, settings_, uniforms_.index_select(0, number_).squeeze(0)));
  tokens_.index_copy_(0, number_, token_.unsqueeze(0));
  log_probabilities_.index_copy_(
      0, number_, at::log_softmax(logits, -1).gather(1, token_.unsqueeze(1)).squeeze(1).unsqueeze(0));
  ended_.logical_or_(at::isin(token_, stops_));
  number_.add_(1);
}

// Of each sample's newest token, whose keys and values go to their places; adds up `x`.
at::Tensor Wave::queries_of(std::size_t layer, Sum& x, const at::Tensor& places) const {
  const LayerWeights& w = decoder_.layers()[layer];
  const at::Tensor &cosine = decoder_.cosine(), &sine = decoder_.sine();
  if (shape_of_.latent.kv_rank > 0) {
    if (x.more.defined()) x = {x.x + x.more, {}};
    const operators::Heads heads = heads_of_layer(x.x, w, shape_of_, position_, cosine, sine);
    operators::put_into_cache(heads, caches_[layer], places);
    return heads.queries;
  }
  const auto [sum, normed] =
      add_norm(x.x, x.more, w.attention_norm, w.attention_norm_bias, shape_of_, Backend::kOperators);
  x = {sum, {}};
  return operators::put_into_cache(qkv_of(normed, w, shape_of_, Backend::kOperators), position_, cosine, sine,
                                   head_shape(shape_of_), caches_[layer], places);
}

void Wave::step() {
  const at::Tensor places = first_places_ + position_, used = (position_ + 1).to(at::kInt);
  Sum x{at::embedding(decoder_.embedding(), token_), {}};
  for (std::size_t l = 0; l < caches_.size(); ++l) {
    const LayerWeights& w = decoder_.layers()[l];
    const at::Tensor queries = queries_of(l, x, places);
    const at::Tensor attended =
        operators::attend_to_cache(queries, caches_[l], used, longest_, score_scale(shape_of_));
    x = parts_behind_attention(x.x, attended, w, shape_of_);
  }
  draw(at::linear(decoder_.normed(x.x + x.more), decoder_.head()));
  // A sample that has come to its limit stays at its last place until the wave ends.
  position_.add_(1).clamp_max_(shape_of_.context - 1);
}

bool Wave::ended() const { return ended_.all().item().toBool(); }

void Wave::run() {
  const at::NoGradGuard guard;
  prefill();
  draw(prompt_logits_);
  prompt_logits_.reset();
  // On a GPU a few steps as they are: libraries choose and allocate in their first calls.
  const bool recordable = operators::is_flash(caches_[0].keys, caches_[0].values) &&
                          shape_of_.experts.experts == 0 && most_ > kStepsBeforeRecording + kLookEvery;
  const Fused* const fused = recordable ? fused_for(decoder_.flat()) : nullptr;
  const std::unique_ptr<StepGraph> graph = fused ? fused->make_step_graph() : nullptr;
  for (std::int64_t done = 1; done < most_; ++done) {
    if (done % kLookEvery == 0 && ended()) break;
    longest_ = std::min(longest_prompt_ + done, caches_[0].length);
    if (graph && done == kStepsBeforeRecording) graph->record([&] { step(); });
    if (graph && done >= kStepsBeforeRecording)
      graph->replay();
    else
      step();
  }
  deliver();
}

void Wave::deliver() const {
  const at::Tensor tokens = tokens_.cpu(), log_probabilities = log_probabilities_.cpu();
  const std::int64_t done = number_.item().toLong();
  for (std::int64_t i = 0; i < count(); ++i) {
    Sample& out = *draws_[static_cast<std::size_t>(i)].out;
    for (std::int64_t t = 0; t < std::min(done, limits_[static_cast<std::size_t>(i)]) && !out.finished; ++t) {
      out.tokens.push_back(static_cast<Token>(tokens.const_data_ptr<std::int64_t>()[t * count() + i]));
      out.log_probabilities.push_back(log_probabilities.const_data_ptr<float>()[t * count() + i]);
      out.finished = std::find(settings_.stops.begin(), settings_.stops.end(), out.tokens.back()) !=
                     settings_.stops.end();
    }
  }
}

}  // namespace

void sample_wave(const Decoder& decoder, std::span<const Draw> draws, const SamplerSettings& settings) {
  std::vector<Draw> with_room;
  for (const Draw& one : draws)
    if (static_cast<std::int64_t>(one.prompt->size()) < decoder.settings().context) with_room.push_back(one);
  if (!with_room.empty()) Wave(decoder, with_room, settings).run();
}

}  // namespace warpsmith::model

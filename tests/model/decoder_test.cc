// Gradients against finite differences in float64, causality, and the shared prefix against the naive form.
#include "warpsmith/model/decoder.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <iostream>

#include "warpsmith/base/random.h"
#include "warpsmith/model/tokenizer.h"

namespace warpsmith::model {
namespace {

DecoderSettings small() {
  DecoderSettings s;
  s.layers = 2;
  s.width = 16;
  s.heads = 4;
  s.kv_heads = 2;
  s.hidden = 24;
  s.context = 256;
  s.vocabulary = kFirstMerge + 3;
  s.init_deviation = 0.3;  // far from zero, so that no part is linear
  return s;
}

std::vector<Token> random_tokens(Random& random, std::size_t n) {
  std::vector<Token> tokens(n);
  for (Token& token : tokens) token = static_cast<Token>(random.below(kFirstMerge));
  return tokens;
}

Decoder random_decoder(const DecoderSettings& settings, at::ScalarType dtype) {
  at::set_num_threads(1);  // the machine may be busy, and these are small
  Decoder decoder(settings, dtype);
  decoder.initialise(3);
  Random random(4);  // biases and norms too
  at::NoGradGuard guard;
  for (const NamedTensor& p : decoder.parameters())
    if (!p.decays)
      for (std::int64_t i = 0; i < p.tensor.numel(); ++i) p.tensor.view(-1)[i] += 0.2 * random.normal();
  return decoder;
}

PackedBatch example_batch(bool shared) {
  Random random(11);
  PackedBatch batch;
  const std::vector<Token> prompt = random_tokens(random, 9), other = random_tokens(random, 4);
  const std::vector<std::vector<Token>> completions = {random_tokens(random, 7), random_tokens(random, 1),
                                                       random_tokens(random, 5)};
  if (shared) append_group(batch, prompt, completions);
  for (const auto& completion : completions)
    if (!shared) append_sequence(batch, prompt, completion);
  append_sequence(batch, other, completions[2]);
  return batch;
}

// A loss in which every log-probability has another weight.
at::Tensor weighted_sum(const at::Tensor& log_probabilities) {
  const at::Tensor weights = at::arange(1, log_probabilities.numel() + 1, log_probabilities.options()).sin();
  return (log_probabilities * weights).sum();
}

class GradientTest : public ::testing::TestWithParam<bool> {};

TEST_P(GradientTest, EqualsFiniteDifferences) {
  Decoder decoder = random_decoder(small(), at::kDouble);
  const PackedBatch batch = example_batch(GetParam());
  decoder.zero_gradient();
  weighted_sum(decoder.log_probabilities(batch)).backward();
  const at::NoGradGuard guard;
  const auto loss = [&] { return weighted_sum(decoder.log_probabilities(batch)).item<double>(); };
  Random random(1);
  for (const NamedTensor& p : decoder.parameters()) {
    double* values = p.tensor.mutable_data_ptr<double>();
    const double* gradient = p.tensor.grad().const_data_ptr<double>();
    double largest = 0;
    for (int draw = 0; draw < 24; ++draw) {
      const auto i = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(p.tensor.numel())));
      const double kept = values[i], step = 1e-5;
      values[i] = kept + step;
      const double above = loss();
      values[i] = kept - step;
      const double below = loss();
      values[i] = kept;
      // Central differences err by step^2 times the third derivative and by rounding over step: about 1e-9
      // here.
      EXPECT_NEAR(gradient[i], (above - below) / (2 * step), 1e-6 * std::max(1.0, std::abs(gradient[i])))
          << p.name << "[" << i << "]";
      largest = std::max(largest, std::abs(gradient[i]));
    }
    if (p.name == "embedding") continue;  // most rows are of tokens that do not occur
    EXPECT_GT(largest, 1e-4) << p.name << ": no gradient to compare";
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, GradientTest, ::testing::Bool(),
                         [](const auto& form) { return form.param ? "SharedPrefix" : "Plain"; });

TEST(Decoder, SharedPrefixEqualsTheNaiveForm) {
  Decoder decoder = random_decoder(small(), at::kDouble);
  at::Tensor values[2], gradients[2];
  for (const bool shared : {false, true}) {
    decoder.zero_gradient();
    const at::Tensor log_probabilities = decoder.log_probabilities(example_batch(shared));
    weighted_sum(log_probabilities).backward();
    values[shared] = log_probabilities.detach().clone();
    gradients[shared] = decoder.flat_gradient().clone();
  }
  ASSERT_EQ(values[0].numel(), 7 + 1 + 5 + 5);
  EXPECT_LT((values[0] - values[1]).abs().max().item<double>(), 1e-12);
  EXPECT_LT((gradients[0] - gradients[1]).abs().max().item<double>(), 1e-11);
}

TEST(Decoder, ALaterTokenChangesNothingBeforeIt) {
  const Decoder decoder = random_decoder(small(), at::kFloat);
  const at::NoGradGuard guard;
  Random random(2);
  PackedBatch batch;
  batch.tokens = random_tokens(random, 150);  // several blocks of queries
  batch.segments = {{0, 150, -1}};
  for (std::int64_t i = 0; i < 150; ++i) batch.rows.push_back(i);
  const at::Tensor before = decoder.logits(batch);
  batch.tokens[100] = (batch.tokens[100] + 1) % kFirstMerge;
  const at::Tensor after = decoder.logits(batch);
  EXPECT_TRUE(at::equal(before.narrow(0, 0, 100), after.narrow(0, 0, 100)));
  EXPECT_GT((before.narrow(0, 100, 50) - after.narrow(0, 100, 50)).abs().amin(0).max().item<double>(), 0.0);
  EXPECT_GT((before[149] - after[149]).abs().max().item<double>(), 1e-6) << "it must be seen from behind";
}

TEST(Decoder, SegmentsDoNotSeeEachOther) {
  const Decoder decoder = random_decoder(small(), at::kDouble);
  const at::NoGradGuard guard;
  Random random(2);
  const auto prompt = random_tokens(random, 5), first = random_tokens(random, 6),
             second = random_tokens(random, 8);
  PackedBatch alone, together;
  append_sequence(alone, prompt, second);
  append_sequence(together, prompt, first);
  append_group(together, prompt, {first, second});
  const at::Tensor packed = decoder.log_probabilities(together);
  EXPECT_LT((packed.narrow(0, 12, 8) - decoder.log_probabilities(alone)).abs().max().item<double>(), 1e-12);
}

TEST(Decoder, RotaryPositionsAreRelativeInAttentionScores) {
  // Rotating by a constant more leaves every score as it was: shift all positions by giving a longer context
  // a prefix of which nothing is seen. Here: the same segment at positions 0… and 40… through the rotation
  // tables alone.
  const Decoder decoder = random_decoder(small(), at::kDouble);
  const std::int64_t half = small().head_dim() / 2;
  const at::Tensor q = at::randn({half}, at::kDouble), q2 = at::randn({half}, at::kDouble),
                   k = at::randn({half}, at::kDouble), k2 = at::randn({half}, at::kDouble);
  const auto score = [&](std::int64_t i, std::int64_t j) {
    const at::Tensor ci = decoder.cosine()[i], si = decoder.sine()[i], cj = decoder.cosine()[j],
                     sj = decoder.sine()[j];
    return ((q * ci - q2 * si) * (k * cj - k2 * sj) + (q2 * ci + q * si) * (k2 * cj + k * sj))
        .sum()
        .item<double>();
  };
  EXPECT_NEAR(score(7, 3), score(47, 43), 1e-12);
  EXPECT_GT(std::abs(score(7, 3) - score(7, 4)), 1e-9);
}

TEST(Decoder, RefusesWhatDoesNotFit) {
  const Decoder decoder(small());
  PackedBatch batch;
  append_sequence(batch, {kBos}, {9999});
  batch.tokens[0] = 9999;
  EXPECT_THROW((void)decoder.logits(batch), Error);
  PackedBatch longer;
  append_sequence(longer, std::vector<Token>(250, kBos), std::vector<Token>(10, kEos));
  EXPECT_THROW((void)decoder.logits(longer), Error);
  EXPECT_THROW(decoder_settings_from_json({{"width", 10}, {"heads", 4}}), Error);
  EXPECT_THROW(decoder_settings_from_json({{"heads", 4}, {"kv_heads", 3}}), Error);
  EXPECT_THROW(decoder_settings_from_json({{"vocabulary", 0}}), Error);
  EXPECT_EQ(decoder_settings_from_json(to_json(small())), small());
}

TEST(Decoder, RepeatsBitForBit) {
  at::set_num_threads(2);
  const auto run = [] {
    DecoderSettings settings;
    Decoder decoder(settings);
    decoder.initialise(3);
    Random random(11);
    PackedBatch batch;
    for (int i = 0; i < 3; ++i) append_sequence(batch, random_tokens(random, 150), random_tokens(random, 80));
    weighted_sum(decoder.log_probabilities(batch)).backward();
    return decoder.flat_gradient().clone();
  };
  EXPECT_TRUE(at::equal(run(), run()));
}

}  // namespace
}  // namespace warpsmith::model

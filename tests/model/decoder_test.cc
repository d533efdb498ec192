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

DecoderSettings with_adapters() {
  DecoderSettings s = small();
  s.lora = {3, 6, {"q_proj", "v_proj", "o_proj", "up_proj", "down_proj"}};
  return s;
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
  decoder.initialise_adapters(5);
  for (const NamedTensor& p : decoder.adapters())
    for (std::int64_t i = 0; i < p.tensor.numel(); ++i) p.tensor.view(-1)[i] += 0.3 * random.normal();
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

struct Form {
  const char* name;
  bool shared;
  Backend backend;
  bool recompute, adapters;
};
void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

class GradientTest : public ::testing::TestWithParam<Form> {};

TEST_P(GradientTest, EqualsFiniteDifferences) {
  const Form& form = GetParam();
  Decoder decoder = random_decoder(form.adapters ? with_adapters() : small(), at::kDouble)
                        .copied(at::kDouble, form.backend);
  decoder.recompute(form.recompute);
  const PackedBatch batch = example_batch(form.shared);
  decoder.zero_gradient();
  weighted_sum(decoder.log_probabilities(batch)).backward();
  const at::NoGradGuard guard;
  const auto loss = [&] { return weighted_sum(decoder.log_probabilities(batch)).item<double>(); };
  Random random(1);
  for (const NamedTensor& p : decoder.trained()) {
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

INSTANTIATE_TEST_SUITE_P(
    Forms, GradientTest,
    ::testing::Values(Form{"Plain", false, Backend::kLoops, false, false},
                      Form{"SharedPrefix", true, Backend::kLoops, false, false},
                      Form{"Recomputed", true, Backend::kLoops, true, false},
                      Form{"Adapters", true, Backend::kLoops, false, true},
                      Form{"Operators", false, Backend::kOperators, false, false},
                      Form{"OperatorsSharedPrefix", true, Backend::kOperators, false, false},
                      Form{"OperatorsRecomputedAdapters", true, Backend::kOperators, true, true}),
    [](const auto& form) { return std::string(form.param.name); });

at::Tensor gradient_of(Decoder& decoder, const PackedBatch& batch) {
  decoder.zero_gradient();
  weighted_sum(decoder.log_probabilities(batch)).backward();
  return decoder.flat_gradient().clone();
}

double furthest(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

TEST(Decoder, BackendsAgree) {
  DecoderSettings settings = small();
  settings.qk_norm = true;
  settings.tied = false;
  Decoder loops = random_decoder(settings, at::kDouble);
  Decoder operators = loops.copied(at::kDouble, Backend::kOperators);
  for (const bool shared : {false, true}) {
    const PackedBatch batch = example_batch(shared);
    EXPECT_LT(furthest(loops.logits(batch), operators.logits(batch)), 1e-12);
    EXPECT_LT(furthest(gradient_of(loops, batch), gradient_of(operators, batch)), 1e-11);
  }
  EXPECT_THROW(Decoder(settings, at::kBFloat16, Backend::kLoops), Error);
}

TEST(Decoder, BFloat16IsNear) {
  Decoder exact = random_decoder(small(), at::kFloat), half = exact.copied(at::kBFloat16);
  const PackedBatch batch = example_batch(true);
  const at::Tensor wide = exact.log_probabilities(batch), narrow = half.log_probabilities(batch);
  EXPECT_EQ(narrow.scalar_type(), at::kFloat);
  EXPECT_LT(furthest(wide, narrow), 0.1);
  EXPECT_GT(furthest(wide, narrow), 0);
  const at::Tensor a = gradient_of(exact, batch), b = gradient_of(half, batch).to(at::kFloat);
  EXPECT_GT(at::cosine_similarity(a, b, 0).item<double>(), 0.999);
}

TEST(Decoder, RecomputedLayersGiveTheSameGradientsBitForBit) {
  for (const Backend backend : {Backend::kLoops, Backend::kOperators}) {
    Decoder decoder = random_decoder(small(), at::kFloat).copied(at::kFloat, backend);
    const at::Tensor kept = gradient_of(decoder, example_batch(true));
    decoder.recompute(true);
    EXPECT_TRUE(at::equal(kept, gradient_of(decoder, example_batch(true))));
  }
}

// So many words that the head's rows come in three parts.
TEST(Decoder, PartsOfTheHeadAddUp) {
  DecoderSettings settings = small();
  settings.vocabulary = 1 << 21;
  settings.layers = 1;
  settings.width = 4;
  settings.heads = settings.kv_heads = 1;
  Decoder decoder = random_decoder(settings, at::kFloat);
  const PackedBatch batch = example_batch(true);
  ASSERT_EQ(batch.rows.size(), 18);
  decoder.zero_gradient();
  const at::Tensor whole =
      at::log_softmax(decoder.logits(batch), -1)
          .gather(
              1,
              at::tensor(std::vector<std::int64_t>(batch.targets.begin(), batch.targets.end())).unsqueeze(1))
          .squeeze(1);
  weighted_sum(whole).backward();
  const at::Tensor gradient = decoder.flat_gradient().clone();
  EXPECT_LT(furthest(whole, decoder.log_probabilities(batch)), 1e-5);
  EXPECT_LT(furthest(gradient, gradient_of(decoder, batch)), 1e-5);
  // Where the gradient that comes back is known, it is used at once.
  const at::Tensor known = at::arange(1, 19, at::kFloat).sin();
  decoder.zero_gradient();
  (decoder.log_probabilities(batch, known) * known).sum().backward();
  EXPECT_LT(furthest(gradient, decoder.flat_gradient()), 1e-5);
}

TEST(Lora, FreshAdaptersChangeNothingAndNothingElseIsTrained) {
  Decoder plain = random_decoder(small(), at::kFloat), adapted(with_adapters());
  at::Tensor flat = adapted.flat();
  flat.copy_(plain.flat());
  adapted.initialise_adapters(1);
  const PackedBatch batch = example_batch(true);
  EXPECT_TRUE(at::equal(plain.logits(batch), adapted.logits(batch)));
  EXPECT_EQ(adapted.trained().size(), 2 * 2 * 5);
  EXPECT_EQ(adapter_count(with_adapters()),
            2 * 3 * ((16 + 16) + (16 + 8) + (16 + 16) + (16 + 24) + (24 + 16)));
  EXPECT_FALSE(adapted.parameters()[1].tensor.requires_grad());
  EXPECT_EQ(decoder_settings_from_json(to_json(with_adapters())), with_adapters());
}

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

TEST(Lora, MergedMatricesDoWhatAdaptersDid) {
  const Decoder adapted = random_decoder(with_adapters(), at::kFloat);
  const Decoder merged = adapted.merged();
  EXPECT_EQ(merged.settings(), small());
  const PackedBatch batch = example_batch(true);
  EXPECT_LT(furthest(adapted.logits(batch), merged.logits(batch)), 1e-4);
  EXPECT_GT(furthest(adapted.flat(), merged.flat()), 0.01);
}

}  // namespace
}  // namespace warpsmith::model

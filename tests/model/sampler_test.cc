// The cache against the whole forward pass, and what picks a token.
#include "warpsmith/model/sampler.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"
#include "warpsmith/model/tokenizer.h"

namespace warpsmith::model {
namespace {

using ::testing::ElementsAre;

// What differs between families.
struct Shape {
  bool qkv_bias = true, tied = true, qk_norm = false;
  std::int64_t head_size = 0;
};

Decoder random_decoder(const Shape& shape = {}) {
  at::set_num_threads(1);
  DecoderSettings s;
  s.layers = 2;
  s.width = 32;
  s.heads = 4;
  s.kv_heads = 2;
  s.hidden = 48;
  s.context = 128;
  s.vocabulary = 300;
  s.init_deviation = 0.25;
  s.qkv_bias = shape.qkv_bias;
  s.tied = shape.tied;
  s.qk_norm = shape.qk_norm;
  s.head_size = shape.head_size;
  Decoder decoder(s);
  decoder.initialise(9);
  return decoder;
}

const std::vector<Token> kPromptTokens = {kBos, kPrompt, 40, 50, 60, 70, 41, kAnswer};

std::vector<std::uint64_t> keys(std::size_t n) {
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(random_key({7, i}));
  return out;
}

class CacheTest : public ::testing::TestWithParam<Shape> {};

TEST_P(CacheTest, LogProbabilitiesEqualThoseWithoutCache) {
  const Decoder decoder = random_decoder(GetParam());
  const std::vector<Sample> samples = sample(decoder, kPromptTokens, keys(6), {.max_tokens = 60});
  const at::NoGradGuard guard;
  std::size_t compared = 0;
  for (const Sample& s : samples) {
    ASSERT_EQ(s.tokens.size(), s.log_probabilities.size());
    PackedBatch batch;
    append_sequence(batch, kPromptTokens, s.tokens);
    const at::Tensor whole = decoder.log_probabilities(batch);
    for (std::size_t i = 0; i < s.tokens.size(); ++i, ++compared)
      EXPECT_NEAR(s.log_probabilities[i], whole[static_cast<std::int64_t>(i)].item<float>(), 1e-5) << i;
  }
  EXPECT_GT(compared, 100u);
}

INSTANTIATE_TEST_SUITE_P(Families, CacheTest,
                         ::testing::Values(Shape{}, Shape{.qkv_bias = false}, Shape{.tied = false},
                                           Shape{.qkv_bias = false, .qk_norm = true, .head_size = 12},
                                           Shape{.head_size = 6}));

TEST(Sampler, GreedyTokenIsTheLargestLogitWithoutCache) {
  const Decoder decoder = random_decoder();
  const std::vector<Sample> samples =
      sample(decoder, kPromptTokens, keys(2), {.temperature = 0, .max_tokens = 20});
  EXPECT_EQ(samples[0].tokens, samples[1].tokens);
  const at::NoGradGuard guard;
  PackedBatch batch;
  append_sequence(batch, kPromptTokens, samples[0].tokens);
  const at::Tensor best = decoder.logits(batch).argmax(1);
  for (std::size_t i = 0; i < samples[0].tokens.size(); ++i)
    EXPECT_EQ(samples[0].tokens[i], best[static_cast<std::int64_t>(i)].item<std::int64_t>());
}

TEST(Sampler, SameKeysGiveTheSameSamples) {
  const Decoder decoder = random_decoder();
  const std::vector<Sample> one = sample(decoder, kPromptTokens, keys(8), {.max_tokens = 40});
  const std::vector<Sample> two = sample(decoder, kPromptTokens, keys(8), {.max_tokens = 40});
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].tokens, two[i].tokens);
    EXPECT_EQ(one[i].log_probabilities, two[i].log_probabilities);
  }
  EXPECT_NE(one[0].tokens, one[1].tokens);
}

TEST(Sampler, WhoLeavesTheBatchChangesNothingForTheOthers) {
  const Decoder decoder = random_decoder();
  const std::vector<Sample> together = sample(decoder, kPromptTokens, keys(12), {.max_tokens = 50});
  for (std::size_t i = 0; i < together.size(); ++i) {
    const std::vector<std::uint64_t> key = {keys(12)[i]};
    const Sample alone = sample(decoder, kPromptTokens, key, {.max_tokens = 50})[0];
    EXPECT_EQ(alone.tokens, together[i].tokens)
        << "a sample drawn at a tie of rounding would be a strange accident";
    for (std::size_t t = 0; t < alone.tokens.size(); ++t)
      EXPECT_NEAR(alone.log_probabilities[t], together[i].log_probabilities[t], 1e-5);
  }
}

TEST(Sampler, EndsAtTheStopTokenTheLimitOrTheContext) {
  Decoder decoder = random_decoder();
  for (const Sample& s : sample(decoder, kPromptTokens, keys(4), {.max_tokens = 3}))
    EXPECT_TRUE(s.finished ? s.tokens.back() == kEos : s.tokens.size() == 3);
  for (const Sample& s : sample(decoder, kPromptTokens, keys(4), {.max_tokens = 1000}))
    EXPECT_TRUE(s.finished || s.tokens.size() == 128u - kPromptTokens.size());
  for (const Sample& s : sample(decoder, std::vector<Token>(128, 40), keys(2), {})) {
    EXPECT_TRUE(s.tokens.empty());
    EXPECT_FALSE(s.finished);
  }
  {  // <eos> as likely as can be: every sample is that one token
    const at::NoGradGuard guard;
    decoder.embedding().zero_();
    decoder.embedding().narrow(0, kEos, 1).fill_(50);
    decoder.embedding().narrow(0, 40, 1).fill_(1);
  }
  for (const Sample& s : sample(decoder, std::vector<Token>{40}, keys(3), {.max_tokens = 9})) {
    EXPECT_THAT(s.tokens, ElementsAre(kEos));
    EXPECT_TRUE(s.finished);
    EXPECT_NEAR(s.log_probabilities[0], 0, 1e-6);
  }
}

TEST(Sampler, SmallerBatchesOfOneItemGiveTheSameTokens) {
  const Decoder decoder = random_decoder();
  const auto one = sample(decoder, kPromptTokens, keys(7), {.max_tokens = 30});
  const auto two = sample(decoder, kPromptTokens, keys(7), {.max_tokens = 30, .batch = 3});
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].tokens, two[i].tokens);
}

// Prompts of several lengths, two of them equal, waves that cut requests in two.
std::vector<SampleRequest> requests() {
  std::vector<SampleRequest> out = {{kPromptTokens, keys(6)},
                                    {{kBos, kPrompt, 44, kAnswer}, keys(9)},
                                    {kPromptTokens, {random_key({8, 1}), random_key({8, 2})}},
                                    {std::vector<Token>(126, 40), keys(2)},
                                    {std::vector<Token>(128, 40), keys(2)}};
  return out;
}

class WaveTest : public ::testing::TestWithParam<SamplerSettings> {};

TEST_P(WaveTest, DrawsWhatTheLoopsDraw) {
  for (const Shape& shape : {Shape{}, Shape{.qkv_bias = false, .qk_norm = true, .head_size = 12}}) {
    const Decoder decoder = random_decoder(shape);
    const std::vector<std::vector<Sample>> by_loops = sample_all(decoder, requests(), GetParam());
    const auto by_waves = sample_all(decoder.copied(at::kFloat, Backend::kOperators), requests(), GetParam());
    ASSERT_EQ(by_waves.size(), 5u);
    for (std::size_t r = 0; r < by_waves.size(); ++r) {
      ASSERT_EQ(by_waves[r].size(), requests()[r].keys.size());
      for (std::size_t i = 0; i < by_waves[r].size(); ++i) {
        const Sample &wave = by_waves[r][i], &loops = by_loops[r][i];
        EXPECT_EQ(wave.tokens, loops.tokens) << r << " " << i;
        EXPECT_EQ(wave.finished, loops.finished);
        for (std::size_t t = 0; t < wave.tokens.size(); ++t)
          EXPECT_NEAR(wave.log_probabilities[t], loops.log_probabilities[t], 1e-5);
      }
    }
    EXPECT_EQ(by_waves[3][0].tokens.size(), by_waves[3][0].finished ? by_waves[3][0].tokens.size() : 2);
    EXPECT_TRUE(by_waves[4][0].tokens.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, WaveTest,
                         ::testing::Values(SamplerSettings{.max_tokens = 50, .batch = 7},
                                           SamplerSettings{.temperature = 0, .max_tokens = 30},
                                           SamplerSettings{
                                               .temperature = 0.7, .top_p = 0.8, .max_tokens = 40},
                                           SamplerSettings{.top_k = 20, .max_tokens = 40, .batch = 3},
                                           SamplerSettings{.max_tokens = 40, .stops = {kEos, 40, 41, 42}}));

TEST(Wave, BFloat16IsTheTrainersLogProbabilities) {
  const Decoder decoder = random_decoder().copied(at::kBFloat16);
  const auto samples = sample_all(decoder, requests(), {.max_tokens = 60});
  const at::NoGradGuard guard;
  double sum = 0;
  std::size_t compared = 0;
  for (std::size_t r = 0; r < samples.size(); ++r)
    for (const Sample& s : samples[r]) {
      PackedBatch batch;
      append_sequence(batch, requests()[r].prompt, s.tokens);
      if (s.tokens.empty()) continue;
      const at::Tensor whole = decoder.log_probabilities(batch);
      for (std::size_t i = 0; i < s.tokens.size(); ++i, ++compared)
        sum += std::abs(s.log_probabilities[i] - whole[static_cast<std::int64_t>(i)].item<float>());
    }
  EXPECT_GT(compared, 300u);
  EXPECT_LT(sum / static_cast<double>(compared), 0.01);
}

TEST(PickToken, FollowsTheDistribution) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.1f), std::log(0.4f)};
  EXPECT_EQ(pick_token(logits, {}, 0.0), 0);
  EXPECT_EQ(pick_token(logits, {}, 0.49), 0);
  EXPECT_EQ(pick_token(logits, {}, 0.55), 1);
  EXPECT_EQ(pick_token(logits, {}, 0.61), 2);
  EXPECT_EQ(pick_token(logits, {}, 0.999999), 2);
  std::map<Token, int> counts;
  Random random(3);
  for (int i = 0; i < 20000; ++i) ++counts[pick_token(logits, {.temperature = 0.5}, random.uniform())];
  // Squares, normalised: 0.25, 0.01, 0.16 of 0.42; three standard deviations of a share here are 0.011.
  EXPECT_NEAR(counts[0] / 20000.0, 0.25 / 0.42, 0.011);
  EXPECT_NEAR(counts[1] / 20000.0, 0.01 / 0.42, 0.011);
}

TEST(PickToken, TopKAndTopPLeaveTheRestOut) {
  const std::vector<float> logits = {std::log(0.2f), std::log(0.5f), std::log(0.05f), std::log(0.25f)};
  std::map<Token, int> top_two, top_p;
  for (int i = 0; i < 1000; ++i) {
    ++top_two[pick_token(logits, {.top_k = 2}, i / 1000.0)];
    ++top_p[pick_token(logits, {.top_p = 0.9}, i / 1000.0)];
  }
  EXPECT_EQ(top_two.size(), 2u);
  EXPECT_NEAR(top_two[1], 667, 2);
  EXPECT_NEAR(top_two[3], 333, 2);
  EXPECT_EQ(top_p.size(), 3u) << "0.5 + 0.25 is below 0.9, with 0.2 it is over";
  EXPECT_EQ(top_p.count(2), 0u);
  EXPECT_EQ(pick_token(logits, {.top_p = 0.0001}, 0.9999), 1) << "one token always stays";
}

TEST(Sampler, RefusesSettingsThatMakeNoSense) {
  const Decoder decoder = random_decoder();
  EXPECT_THROW(sample(decoder, kPromptTokens, keys(1), {.temperature = -1}), Error);
  EXPECT_THROW(sample(decoder, kPromptTokens, keys(1), {.top_p = 0}), Error);
  EXPECT_THROW(sample(decoder, kPromptTokens, keys(1), {.max_tokens = 0}), Error);
  EXPECT_THROW(sample(decoder, {}, keys(1), {}), Error);
}

}  // namespace
}  // namespace warpsmith::model

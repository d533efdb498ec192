// What a model takes of a GPU, against sums by hand.
#include "warpsmith/model/gpu_memory.h"

#include <gtest/gtest.h>

namespace warpsmith::model {
namespace {

DecoderSettings shape() {
  DecoderSettings s;
  s.layers = 2, s.width = 64, s.heads = 4, s.kv_heads = 2, s.hidden = 128, s.vocabulary = 1000;
  return s;
}

TEST(GpuMemory, OfTrainingIsWhatIsKept) {
  const DecoderSettings s = shape();
  const auto n = static_cast<std::uint64_t>(parameter_count(s));
  const GpuMemory one = training_memory(s, {.tokens = 100});
  EXPECT_EQ(one.weights, 2 * n);
  EXPECT_EQ(one.gradients, 2 * n);
  EXPECT_EQ(one.optimizer, 12 * n);
  // A token and layer: 4 x 64, queries, keys and values 128, attention's 64, 3 x 128; logits of 100 tokens.
  EXPECT_EQ(one.activations, 2u * (100 * 2 * (256 + 128 + 64 + 384) + 100 * 1000));
  EXPECT_EQ(training_memory(s, {.tokens = 100, .ranks = 4}).optimizer, 3 * n);
  EXPECT_EQ(training_memory(s, {.tokens = 100, .moments_in_bytes = true}).optimizer, 6 * n + n / 32);
  EXPECT_EQ(training_memory(s, {.tokens = 100, .reference = true}).weights, 4 * n);
  EXPECT_EQ(training_memory(s, {.tokens = 100, .recompute = true}).activations,
            2u * (100 * (2 * 64 + (256 + 128 + 64 + 384)) + 100 * 1000));
  const GpuMemory wide = training_memory(s, {.tokens = 100, .bfloat16 = false});
  EXPECT_EQ(wide.weights, 4 * n);
  EXPECT_EQ(wide.optimizer, 8 * n) << "the weights are the master's";
}

TEST(GpuMemory, OfLoraIsItsAdapters) {
  DecoderSettings s = shape();
  s.lora = {4, 8, {"q_proj"}};
  const auto n = static_cast<std::uint64_t>(parameter_count(s)),
             a = static_cast<std::uint64_t>(adapter_count(s));
  const GpuMemory m = training_memory(s, {.tokens = 1, .reference = true});
  EXPECT_EQ(m.weights, 2 * (n + a)) << "the reference is the same weights";
  EXPECT_EQ(m.gradients, 2 * a);
  EXPECT_EQ(m.optimizer, 12 * a);
}

TEST(GpuMemory, OfSamplingIsKeysAndValues) {
  const GpuMemory m = sampling_memory(shape(), {.samples = 8, .places = 512});
  EXPECT_EQ(m.cache, 8u * 512 * 2 * 2 * (16 + 16) * 2);
  EXPECT_EQ(m.all(), m.weights + m.cache + 2u * 8 * 1000);
}

// SmolLM2-135M, a step of 32 sequences of 2,048 tokens: it fits on a card of 80 GB.
TEST(GpuMemory, IsSaidInWords) {
  DecoderSettings s;
  s.layers = 30, s.width = 576, s.heads = 9, s.kv_heads = 3, s.hidden = 1536, s.vocabulary = 49152;
  s.qkv_bias = false;
  EXPECT_EQ(to_string(training_memory(s, {.tokens = 65536})),
            "33.4 GiB: weights 0.3, gradients 0.3, optimiser 1.5, activations 31.4");
}

}  // namespace
}  // namespace warpsmith::model

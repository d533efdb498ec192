// The model on a GPU against the CPU, and against itself. Skips where there is no GPU.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "../scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"
#include "warpsmith/learn/states.h"
#include "warpsmith/learn/trainer.h"
#include "warpsmith/model/fused.h"
#include "warpsmith/model/placement.h"
#include "warpsmith/model/sampler.h"

namespace warpsmith::learn {
namespace {

using model::Decoder;
using model::PackedBatch;
using model::Token;

// Heads of 64, as most models have them, so that flash attention serves.
model::DecoderSettings shape() {
  model::DecoderSettings s;
  s.layers = 4;
  s.width = 256;
  s.heads = 4;
  s.kv_heads = 2;
  s.hidden = 512;
  s.context = 1024;
  s.vocabulary = 4096;
  s.init_deviation = 0.05;
  return s;
}

Decoder make_decoder(model::DecoderSettings settings = shape()) {
  Decoder decoder(settings);
  decoder.initialise(3);
  decoder.initialise_adapters(4);
  return decoder;
}

std::vector<Token> random_tokens(Random& random, std::size_t n) {
  std::vector<Token> tokens(n);
  for (Token& token : tokens) token = static_cast<Token>(random.below(4096));
  return tokens;
}

PackedBatch example_batch(bool shared) {
  Random random(5);
  const std::vector<Token> prompt = random_tokens(random, 150), other = random_tokens(random, 40);
  const std::vector<std::vector<Token>> completions = {random_tokens(random, 130), random_tokens(random, 1),
                                                       random_tokens(random, 77)};
  PackedBatch batch;
  if (shared) append_group(batch, prompt, completions);
  for (const auto& completion : completions)
    if (!shared) append_sequence(batch, prompt, completion);
  append_sequence(batch, other, completions[2]);
  return batch;
}

struct Answer {
  at::Tensor log_probabilities, gradient;  // on the CPU in float32
};

Answer answer_of(Decoder& decoder, const PackedBatch& batch) {
  decoder.zero_gradient();
  const at::Tensor all = decoder.log_probabilities(batch);
  (all * at::arange(1, all.numel() + 1, all.options()).sin()).sum().backward();
  return {all.detach().cpu().to(at::kFloat), decoder.flat_gradient().cpu().to(at::kFloat)};
}

double furthest(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }
double alike(const at::Tensor& a, const at::Tensor& b) {
  return at::cosine_similarity(a, b, 0).item<double>();
}

class GpuModel : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      (void)model::place_for(true, "float32");
    } catch (const Error& why) {
      GTEST_SKIP() << why.what();
    }
    prepare_process(2, true, true);
  }
  const at::TensorOptions wide_ = at::TensorOptions(at::kFloat).device(at::kCUDA, 0),
                          half_ = at::TensorOptions(at::kBFloat16).device(at::kCUDA, 0);
};

TEST_F(GpuModel, Float32IsTheCpus) {
  for (const bool shared : {false, true}) {
    Decoder cpu = make_decoder(), gpu = cpu.copied(wide_);
    const Answer here = answer_of(cpu, example_batch(shared)), there = answer_of(gpu, example_batch(shared));
    EXPECT_LT(furthest(here.log_probabilities, there.log_probabilities), 1e-4) << shared;
    EXPECT_GT(alike(here.gradient, there.gradient), 0.999999) << shared;
    EXPECT_LT(furthest(here.gradient, there.gradient), 1e-3 * here.gradient.abs().max().item<double>());
  }
}

// Flash attention: sequences of unlike lengths, and completions behind one prompt.
TEST_F(GpuModel, BFloat16IsNearTheCpus) {
  model::DecoderSettings with_adapters = shape();
  with_adapters.lora = {4, 8, {"q_proj", "v_proj", "o_proj", "down_proj"}};
  for (const model::DecoderSettings& settings : {shape(), with_adapters})
    for (const bool shared : {false, true})
      for (const bool recompute : {false, true}) {
        Decoder cpu = make_decoder(settings), gpu = cpu.copied(half_);
        gpu.recompute(recompute);
        const Answer here = answer_of(cpu, example_batch(shared)),
                     there = answer_of(gpu, example_batch(shared));
        EXPECT_LT((here.log_probabilities - there.log_probabilities).abs().mean().item<double>(), 0.02);
        EXPECT_GT(alike(here.gradient, there.gradient), 0.998) << shared << recompute;
      }
}

// One query of each sequence over what is used of its cache: sizes and numbers of heads as models have them.
TEST_F(GpuModel, ACacheIsAttendedTo) {
  struct Case {
    std::int64_t sequences, heads, kv_heads, size, length;
  };
  const model::Fused* const fused = model::fused_for(half_);
  ASSERT_NE(fused, nullptr);
  for (const Case& c : {Case{16, 14, 2, 64, 640},
                        {3, 9, 3, 64, 192},
                        {5, 8, 8, 128, 320},
                        {4, 16, 1, 128, 64},
                        {2, 6, 3, 80, 1024},
                        {7, 4, 2, 16, 128},
                        {1, 32, 8, 96, 4160}}) {
    ASSERT_TRUE(fused->attends_to_cache(c.heads, c.kv_heads, c.size));
    at::manual_seed(static_cast<std::uint64_t>(c.size));
    const at::Tensor rows = at::randn({c.sequences, 2 * c.heads, c.size}, half_);
    const at::Tensor queries = rows.narrow(1, 0, c.heads);  // rows twice as far apart
    const at::Tensor keys = at::randn({c.sequences * c.length, c.kv_heads, c.size}, half_);
    const at::Tensor values = at::randn({c.sequences * c.length, c.kv_heads, c.size}, half_);
    // The first of a split, its last, one behind it; all places.
    const std::vector<int> uses = {1, 63, 64, 65, static_cast<int>(c.length)};
    for (int again = 0; again < 3; ++again) {
      std::vector<int> used;
      for (std::int64_t i = 0; i < c.sequences; ++i)
        used.push_back(
            std::min(uses[static_cast<std::size_t>(i + again) % uses.size()], static_cast<int>(c.length)));
      const at::Tensor out = at::full({c.sequences, c.heads * c.size}, NAN, half_);
      const double scale = 1 / std::sqrt(static_cast<double>(c.size));
      fused->attend_to_cache(queries, keys, values, c.length, at::tensor(used, at::kInt).to(half_.device()),
                             scale, out);
      for (std::int64_t i = 0; i < c.sequences; ++i) {
        const auto of_sequence = [&](const at::Tensor& all) {  // [heads, used, size]
          return all.narrow(0, i * c.length, used[static_cast<std::size_t>(i)])
              .to(at::kFloat)
              .repeat_interleave(c.heads / c.kv_heads, 1)
              .transpose(0, 1);
        };
        const at::Tensor shares = at::softmax(
            at::matmul(queries[i].to(at::kFloat).unsqueeze(1), of_sequence(keys).transpose(1, 2)) * scale,
            -1);
        const at::Tensor right = at::matmul(shares, of_sequence(values)).flatten();
        EXPECT_LT(furthest(out[i].to(at::kFloat), right), 0.01)
            << c.heads << " " << c.kv_heads << " " << c.size << " " << used[static_cast<std::size_t>(i)];
      }
    }
  }
}

// Attention of segments whose queries, keys and values lie in `qkv` [tokens, heads + 2 kv_heads, size].
at::Tensor plain_attention(const at::Tensor& qkv, const std::vector<int>& lengths, std::int64_t heads,
                           std::int64_t kv_heads, double scale) {
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const int length : lengths) {
    const auto part = [&](std::int64_t first, std::int64_t n) {  // [heads, length, size]
      return qkv.narrow(0, begin, length).narrow(1, first, n).repeat_interleave(heads / n, 1).transpose(0, 1);
    };
    const at::Tensor later = at::ones({length, length}, qkv.options().dtype(at::kBool)).triu(1);
    const at::Tensor scores =
        (at::matmul(part(0, heads), part(heads, kv_heads).transpose(1, 2)) * scale).masked_fill(later, -1e9);
    parts.push_back(at::matmul(at::softmax(scores, -1), part(heads + kv_heads, kv_heads)).transpose(0, 1));
    begin += length;
  }
  return at::cat(parts);
}

// Segments of unlike and of equal lengths, as many as there are places and fewer.
TEST_F(GpuModel, PackedAttentionIsPlainAttention) {
  const model::Fused* const fused = model::fused_for(half_);
  ASSERT_NE(fused, nullptr);
  if (!fused->attends_packed(4, 2, 64)) GTEST_SKIP() << "a GPU older than Hopper, or no cudnn_frontend.h";
  struct Case {
    std::int64_t heads, kv_heads, size;
    std::vector<int> lengths;
  };
  for (const Case& c : {Case{14, 2, 64, {512, 512}}, Case{9, 3, 64, {1, 2, 200, 63, 129}},
                        Case{8, 8, 128, {300}}, Case{6, 2, 96, {77, 1, 1, 128, 5, 256, 31}}}) {
    const std::int64_t tokens = std::accumulate(c.lengths.begin(), c.lengths.end(), std::int64_t{0}),
                       rows = c.heads + 2 * c.kv_heads;
    at::manual_seed(3);
    const at::Tensor qkv = at::randn({tokens, rows, c.size}, half_),
                     dout = at::randn({tokens, c.heads, c.size}, half_);
    const double scale = 1 / std::sqrt(static_cast<double>(c.size));
    const at::Tensor wide = qkv.to(at::kFloat).requires_grad_(),
                     right = plain_attention(wide, c.lengths, c.heads, c.kv_heads, scale);
    right.backward(dout.to(at::kFloat));

    std::vector<int> lengths = c.lengths;
    lengths.resize(static_cast<std::size_t>(model::power_of_two(std::ssize(lengths))));
    std::vector<std::int64_t> ends = {0};
    for (const int length : lengths) ends.push_back(ends.back() + length);
    const at::Tensor begins = at::tensor(ends, at::kLong).to(half_.device());
    const model::Ragged ragged{at::tensor(lengths, at::kInt).to(half_.device()), begins * (rows * c.size),
                               begins * (c.heads * c.size), begins * c.heads,
                               model::power_of_two(*std::max_element(lengths.begin(), lengths.end()))};
    const auto parts_of = [&](const at::Tensor& all) {
      return model::TurnedHeads{all.narrow(1, 0, c.heads), all.narrow(1, c.heads, c.kv_heads),
                                all.narrow(1, c.heads + c.kv_heads, c.kv_heads)};
    };
    const at::Tensor out = at::full({tokens, c.heads, c.size}, NAN, half_),
                     sums = at::full({tokens, c.heads}, NAN, wide_), gradient = at::full_like(qkv, NAN);
    ASSERT_TRUE(fused->attend_packed(parts_of(qkv), ragged, scale, out, sums)) << c.heads;
    EXPECT_LT(furthest(out.to(at::kFloat), right), 0.02) << c.heads;
    fused->attend_packed_backward(parts_of(qkv), ragged, scale, out, sums, dout, parts_of(gradient));
    EXPECT_GT(alike(gradient.to(at::kFloat).flatten(), wide.grad().flatten()), 0.9999) << c.heads;
  }
}

TEST_F(GpuModel, WithoutAFixedOrderOfSumsItIsTheSameModel) {
  Decoder gpu = make_decoder().copied(half_);
  const Answer fixed = answer_of(gpu, example_batch(false));
  prepare_process(2, true, false);
  const Answer fast = answer_of(gpu, example_batch(false));
  EXPECT_LT((fixed.log_probabilities - fast.log_probabilities).abs().mean().item<double>(), 0.02);
  EXPECT_GT(alike(fixed.gradient, fast.gradient), 0.999);
}

TEST_F(GpuModel, ASharedPromptIsThePromptOfEach) {
  Decoder gpu = make_decoder().copied(half_);
  const Answer apart = answer_of(gpu, example_batch(false)), together = answer_of(gpu, example_batch(true));
  EXPECT_LT((apart.log_probabilities - together.log_probabilities).abs().mean().item<double>(), 0.02);
  EXPECT_GT(alike(apart.gradient, together.gradient), 0.999);
}

TEST_F(GpuModel, GradientsRepeatBitForBit) {
  Decoder gpu = make_decoder().copied(half_);
  const Answer first = answer_of(gpu, example_batch(true)), second = answer_of(gpu, example_batch(true));
  EXPECT_TRUE(at::equal(first.gradient, second.gradient));
}

std::vector<model::SampleRequest> requests(std::size_t prompts, std::size_t samples) {
  Random random(8);
  std::vector<model::SampleRequest> all;
  for (std::size_t i = 0; i < prompts; ++i) {
    all.push_back({random_tokens(random, 20 + 7 * i), {}});
    for (std::size_t k = 0; k < samples; ++k) all.back().keys.push_back(random_key({i, k}));
  }
  return all;
}

// Differences of log-probabilities between the sampler and the decoder's forward pass, all tokens.
std::vector<double> differences(const Decoder& decoder, std::int64_t max_tokens) {
  const auto asked = requests(16, 8);
  const auto samples = sample_all(decoder, asked, {.max_tokens = max_tokens, .stops = {}});
  std::vector<double> all;
  const at::NoGradGuard guard;
  for (std::size_t r = 0; r < samples.size(); ++r)
    for (const model::Sample& s : samples[r]) {
      PackedBatch batch;
      append_sequence(batch, asked[r].prompt, s.tokens);
      const at::Tensor whole = decoder.log_probabilities(batch).cpu();
      for (std::size_t i = 0; i < s.tokens.size(); ++i)
        all.push_back(std::abs(s.log_probabilities[i] - whole[static_cast<std::int64_t>(i)].item<float>()));
    }
  return all;
}

TEST_F(GpuModel, SamplersLogProbabilitiesAreTheTrainers) {
  prepare_process(2, true, false);
  const std::vector<double> wide = differences(make_decoder().copied(wide_), 80);
  EXPECT_EQ(wide.size(), 16u * 8 * 80);
  EXPECT_LT(*std::max_element(wide.begin(), wide.end()), 1e-5);
  const std::vector<double> half = differences(make_decoder().copied(half_), 80);
  double sum = 0;
  for (const double d : half) sum += d;
  const auto far = std::count_if(half.begin(), half.end(), [](double d) { return d > 0.1; });
  RecordProperty("mean", std::to_string(sum / static_cast<double>(half.size())));
  std::printf("bfloat16, %zu tokens: mean difference %.5f, %td above 0.1, largest %.3f\n", half.size(),
              sum / static_cast<double>(half.size()), far, *std::max_element(half.begin(), half.end()));
  EXPECT_LE(sum / static_cast<double>(half.size()), 0.01);
  EXPECT_LE(far, static_cast<std::ptrdiff_t>(half.size() / 1000));
}

// Short waves are not recorded, longer ones are.
TEST_F(GpuModel, RecordedStepsDrawWhatUnrecordedOnesDo) {
  prepare_process(2, true, false);
  const Decoder gpu = make_decoder().copied(half_);
  const auto asked = requests(3, 5);
  const auto few = sample_all(gpu, asked, {.max_tokens = 19, .stops = {}}),
             many = sample_all(gpu, asked, {.max_tokens = 24, .stops = {}}),
             again = sample_all(gpu, asked, {.max_tokens = 24, .stops = {}});
  for (std::size_t r = 0; r < few.size(); ++r)
    for (std::size_t i = 0; i < few[r].size(); ++i) {
      EXPECT_EQ(few[r][i].tokens,
                std::vector<Token>(many[r][i].tokens.begin(), many[r][i].tokens.begin() + 19));
      EXPECT_EQ(many[r][i].tokens, again[r][i].tokens);
    }
}

// A number u in [0, 1) picks the first token whose probability and those of smaller ids add up to more than
// u.
TEST_F(GpuModel, DrawsFollowTheSumsOfProbabilities) {
  const Decoder gpu = make_decoder().copied(half_);
  const std::vector<Token> prompt = requests(1, 1)[0].prompt;
  std::vector<std::uint64_t> keys;
  for (std::uint64_t k = 0; k < 500; ++k) keys.push_back(random_key({77, k}));
  PackedBatch batch;
  batch.tokens = prompt;
  batch.segments = {{0, static_cast<std::int64_t>(prompt.size()), -1}};
  batch.rows = {batch.segments[0].length - 1};
  const at::NoGradGuard guard;
  const at::Tensor logits = gpu.logits(batch).cpu().to(at::kDouble)[0];
  for (const double temperature : {1.0, 0.5, 0.0}) {
    const auto samples = sample_all(gpu, std::vector<model::SampleRequest>{{prompt, keys}},
                                    {.temperature = temperature, .max_tokens = 1, .batch = 500, .stops = {}});
    const at::Tensor sums = at::softmax(logits / std::max(temperature, 1e-9), -1).cumsum(0);
    const at::Tensor log_softmax = at::log_softmax(logits, -1);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const model::Sample& one = samples[0][k];
      const std::int64_t token = one.tokens.at(0);
      EXPECT_NEAR(one.log_probabilities[0], log_softmax[token].item<double>(), 1e-3);
      if (temperature == 0) {
        EXPECT_EQ(token, logits.argmax().item<std::int64_t>());
        continue;
      }
      const double u = Random(keys[k]).uniform();
      EXPECT_GT(sums[token].item<double>(), u - 1e-5);
      EXPECT_LT(token == 0 ? 0 : sums[token - 1].item<double>(), u + 1e-5);
    }
  }
}

std::vector<Example> examples() {
  std::vector<Example> all;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "task" + std::to_string(i % 5);
    all.push_back({std::to_string(i),
                   name + ":",
                   "out = " + name + "(x[" + std::to_string(i) + "]);",
                   1.0,
                   "",
                   0,
                   {},
                   {}});
  }
  return all;
}

// On the host and in files, float32 and bytes: copies on other streams than the updates, three pieces and
// more of them than there are slots.
TEST_F(GpuModel, WhereStatesLieChangesNoUpdate) {
  const Scratch scratch;
  const std::int64_t n = 5 * Moments::kAtATime + 160;
  for (const bool bytes : {false, true}) {
    std::vector<at::Tensor> weights;
    for (const int where : {0, 1, 2, 3}) {
      at::manual_seed(7);
      const at::Tensor master = at::randn({n});
      weights.push_back(master.to(half_.device(), at::kBFloat16));
      const StatesPlan plan{.beside = where == 0   ? n
                                      : where == 3 ? Moments::kAtATime
                                                   : 0,
                            .folder = where == 2 ? scratch.path() : std::filesystem::path(),
                            .piece = Moments::kAtATime};
      States states(weights.back(), master, {}, {}, bytes, plan);
      for (int round = 0; round < 4; ++round) {
        if (round == 2) states.fetch();
        states.each([&](const States::Run& run) {
          const at::Tensor some = at::arange(run.begin, run.begin + run.count, wide_) / n + round;
          run.first.mul_(0.9).add_(some, 0.1);
          run.second.mul_(0.99).addcmul_(some, some, 0.01);
          run.master.addcdiv_(run.first, run.second.sqrt() + 1e-3, -0.01);
          weights.back().narrow(0, run.begin, run.count).copy_(run.master);
        });
      }
      EXPECT_TRUE(at::equal(weights.back(), weights.front())) << where << bytes;
      at::Tensor back = at::empty({n}, at::kBFloat16);
      for (std::int64_t at = 0; at < n; at += Moments::kAtATime) {
        const at::Tensor part = states.read(States::Which::kMaster, at);
        back.narrow(0, at, part.numel()).copy_(part);
      }
      EXPECT_TRUE(at::equal(back, weights.front().cpu())) << where << bytes;
    }
  }
}

TEST_F(GpuModel, WhereStatesLieChangesNoLoss) {
  const Scratch scratch;
  std::vector<std::string> texts;
  for (const Example& e : examples()) texts.insert(texts.end(), {e.prompt, e.completion});
  TrainerSettings settings;
  settings.steps = 20;
  settings.optimizer.batch_tokens = 400;
  settings.placement = half_;
  model::DecoderSettings small = shape();
  small.vocabulary = 300;
  std::vector<double> right;
  for (const char* where : {"gpu", "host", "nvme", "auto"}) {
    settings.optimizer.states = where;
    settings.optimizer.states_folder = where == std::string("nvme") ? scratch.path().string() : "";
    Trainer trainer(settings, make_decoder(small), model::Tokenizer::train(texts, 300), std::nullopt, nullptr,
                    examples());
    for (std::size_t i = 0; i < 20; ++i) {
      const double loss = trainer.step().loss;
      if (right.size() <= i) right.push_back(loss);
      EXPECT_EQ(loss, right[i]) << where << ", step " << i;
    }
  }
}

TEST_F(GpuModel, ResumedTrainingRepeatsEveryLossBitForBit) {
  std::vector<std::string> texts;
  for (const Example& e : examples()) texts.insert(texts.end(), {e.prompt, e.completion});
  TrainerSettings settings;
  settings.steps = 60;
  settings.optimizer.learning_rate = 3e-3;
  settings.optimizer.batch_tokens = 400;
  settings.micro_batch_tokens = 200;
  settings.placement = half_;
  model::DecoderSettings small = shape();
  small.vocabulary = 300;
  const auto make = [&](Decoder decoder, std::optional<model::OptimizerState> state) {
    return Trainer(settings, std::move(decoder), model::Tokenizer::train(texts, 300), std::move(state),
                   nullptr, examples());
  };
  Trainer whole = make(make_decoder(small), std::nullopt);
  TrainerSettings exact = settings;
  exact.placement = at::kFloat;
  Trainer wide(exact, make_decoder(small), model::Tokenizer::train(texts, 300), std::nullopt, nullptr,
               examples());
  std::vector<double> losses;
  std::optional<Trainer> resumed;
  for (int i = 0; i < 60; ++i) {
    losses.push_back(whole.step().loss);
    EXPECT_NEAR(losses.back(), wide.step().loss, 0.2) << "the CPU's in float32, step " << i;
    if (i != 25) continue;
    Decoder copy(small);
    at::Tensor flat = copy.flat().detach();
    flat.copy_(whole.decoder().flat().detach());
    resumed.emplace(make(std::move(copy), whole.optimizer_state()));
    resumed->skip_to(26);
  }
  EXPECT_LT(losses.back(), 0.7 * losses.front());
  for (std::size_t i = 26; i < 60; ++i) EXPECT_EQ(resumed->step().loss, losses[i]) << "step " << i;
}

}  // namespace
}  // namespace warpsmith::learn

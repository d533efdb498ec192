#include "warpsmith/learn/trainer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "../scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/random.h"
#include "warpsmith/learn/series.h"
#include "warpsmith/model/sampler.h"

namespace warpsmith::learn {
namespace {

using model::Decoder;
using model::Tokenizer;

model::DecoderSettings small() {
  model::DecoderSettings s;
  s.layers = 2;
  s.width = 32;
  s.heads = 4;
  s.kv_heads = 2;
  s.hidden = 48;
  s.context = 128;
  s.vocabulary = 300;
  s.init_deviation = 0.05;
  return s;
}

Decoder make_decoder(std::uint64_t seed = 1) {
  at::set_num_threads(1);
  Decoder decoder(small());
  decoder.initialise(seed);
  return decoder;
}

std::vector<Example> examples() {
  std::vector<Example> out;
  const char* names[] = {"relu", "scale", "sum", "max", "mean"};
  for (int i = 0; i < 15; ++i) {
    const std::string name = names[i % 5];
    out.push_back({std::to_string(i),
                   "task " + name + ":",
                   "out = " + name + "(x[" + std::to_string(i) + "]);",
                   1.0,
                   "",
                   0,
                   {},
                   {}});
  }
  return out;
}

Tokenizer make_tokenizer() {
  std::vector<std::string> texts;
  for (const Example& e : examples()) texts.insert(texts.end(), {e.prompt, e.completion});
  return Tokenizer::train(texts, 300);
}

TrainerSettings sft(std::int64_t steps) {
  TrainerSettings s;
  s.steps = steps;
  s.seed = 5;
  s.optimizer.learning_rate = 1e-2;
  s.optimizer.batch_tokens = 100;
  s.optimizer.warmup_steps = 5;
  return s;
}

// How training is computed.
struct Way {
  const char* name;
  at::ScalarType type = at::kFloat;
  std::int64_t micro_batch_tokens = 0;
  bool recompute = false;
};

TrainerSettings sft(std::int64_t steps, const Way& way) {
  TrainerSettings s = sft(steps);
  s.placement = way.type;
  s.micro_batch_tokens = way.micro_batch_tokens;
  s.recompute = way.recompute;
  return s;
}

Trainer make_sft(std::int64_t steps) {
  return Trainer(sft(steps), make_decoder(), make_tokenizer(), std::nullopt, nullptr, examples());
}

TEST(Trainer, LearnsItsExamplesByHeart) {
  Trainer trainer = make_sft(300);
  double first = 0, last = 0;
  for (int i = 0; i < 300; ++i) (i == 0 ? first : last) = trainer.step().loss;
  EXPECT_GT(first, 4.5);  // log(300) is 5.7
  EXPECT_LT(last, 0.5);
}

TEST(Trainer, ResumedTrainingRepeatsEveryLossBitForBit) {
  const fs::path folder = fs::temp_directory_path() / ("warpsmith-resume-" + std::to_string(::getpid()));
  constexpr std::int64_t kSteps = 40, kStop = 23;
  std::vector<StepRecord> whole, halves;
  Trainer one = make_sft(kSteps);
  for (std::int64_t i = 0; i < kSteps; ++i) whole.push_back(one.step());
  {
    Trainer stopped = make_sft(kSteps);
    for (std::int64_t i = 0; i < kStop; ++i) halves.push_back(stopped.step());
    const model::OptimizerState moments = stopped.optimizer_state();
    model::save_checkpoint(folder, {"sft", kStop, 0, {}, {}}, stopped.decoder(), stopped.tokenizer(),
                           &moments);
  }
  model::Checkpoint back = model::load_checkpoint(folder, true);
  Trainer resumed(sft(kSteps), std::move(back.decoder), std::move(back.tokenizer), std::move(back.optimizer),
                  nullptr, examples());
  resumed.skip_to(kStop);
  for (std::int64_t i = kStop; i < kSteps; ++i) halves.push_back(resumed.step());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i].loss, halves[i].loss) << "step " << i;
    EXPECT_EQ(whole[i].gradient_norm, halves[i].gradient_norm) << "step " << i;
  }
  EXPECT_TRUE(at::equal(one.decoder().flat(), resumed.decoder().flat()));
  fs::remove_all(folder);
}

TEST(Trainer, MicroBatchesAddUp) {
  const auto losses = [](const Way& way) {
    Trainer trainer(sft(20, way), make_decoder(), make_tokenizer(), std::nullopt, nullptr, examples());
    std::vector<double> all;
    for (int i = 0; i < 20; ++i) all.push_back(trainer.step().loss);
    return all;
  };
  const std::vector<double> whole = losses({"whole"}), parts = losses({"parts", at::kFloat, 30, true});
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], parts[i], 1e-3 * whole[i]) << i;
}

TEST(Trainer, BFloat16FollowsFloat32AndResumes) {
  const fs::path folder = fs::temp_directory_path() / ("warpsmith-half-" + std::to_string(::getpid()));
  const Way half{"bfloat16", at::kBFloat16, 60, true};
  const auto make = [&](model::Decoder decoder, std::optional<model::OptimizerState> moments) {
    return Trainer(sft(60, half), std::move(decoder), make_tokenizer(), std::move(moments), nullptr,
                   examples());
  };
  Trainer exact = make_sft(60), narrow = make(make_decoder(), std::nullopt);
  std::vector<double> losses;
  for (int i = 0; i < 60; ++i) {
    const double wide = exact.step().loss;
    losses.push_back(narrow.step().loss);
    EXPECT_NEAR(losses.back(), wide, 0.1) << "step " << i;
    if (i != 30) continue;
    const model::OptimizerState moments = narrow.optimizer_state();
    model::save_checkpoint(folder, {"sft", 31, 0, {}, {}}, narrow.decoder(), narrow.tokenizer(), &moments);
  }
  EXPECT_LT(losses.back(), 0.7 * losses.front());
  model::Checkpoint back = model::load_checkpoint(folder, true);
  Trainer resumed = make(std::move(back.decoder), std::move(back.optimizer));
  resumed.skip_to(31);
  for (std::size_t i = 31; i < 60; ++i) EXPECT_EQ(resumed.step().loss, losses[i]) << "step " << i;
  EXPECT_TRUE(at::equal(narrow.decoder().flat(), resumed.decoder().flat()));
  fs::remove_all(folder);
}

// In float32 by the loops and in bfloat16 by the operators: they learn as those in float32 do, take a third
// of the memory (beside the master a half), and are resumed bit for bit.
TEST(Trainer, MomentsInBytesLearnAndResume) {
  const fs::path folder = fs::temp_directory_path() / ("warpsmith-moments-" + std::to_string(::getpid()));
  for (const bool half : {false, true}) {
    const auto make = [&](model::Decoder decoder, std::optional<model::OptimizerState> moments, bool bytes) {
      TrainerSettings s = half ? sft(60, {"bfloat16", at::kBFloat16, 60, true}) : sft(60);
      s.optimizer.moments = bytes ? "int8" : "float32";
      return Trainer(s, std::move(decoder), make_tokenizer(), std::move(moments), nullptr, examples());
    };
    Trainer wide = make(make_decoder(), std::nullopt, false),
            narrow = make(make_decoder(), std::nullopt, true);
    std::vector<double> losses;
    double last = 0;
    for (int i = 0; i < 60; ++i) {
      last = wide.step().loss;
      losses.push_back(narrow.step().loss);
      if (i != 30) continue;
      const model::OptimizerState moments = narrow.optimizer_state();
      model::save_checkpoint(folder, {"sft", 31, 0, {}, {}}, narrow.decoder(), narrow.tokenizer(), &moments);
    }
    EXPECT_LT(losses.back(), 0.7 * losses.front());
    EXPECT_NEAR(losses.back(), last, 0.15 * last) << half;
    EXPECT_NE(losses.back(), last);
    model::Checkpoint back = model::load_checkpoint(folder, true);
    Trainer resumed = make(std::move(back.decoder), std::move(back.optimizer), true);
    resumed.skip_to(31);
    for (std::size_t i = 31; i < 60; ++i) EXPECT_EQ(resumed.step().loss, losses[i]) << "step " << i;
    fs::remove_all(folder);
  }
}

// In a file, by the loops, by the operators and in bytes: the same losses, resumed elsewhere.
TEST(Trainer, WhereStatesLieChangesNoLoss) {
  const Scratch scratch;
  for (const bool half : {false, true})
    for (const bool bytes : {false, true}) {
      const auto make = [&](model::Decoder decoder, std::optional<model::OptimizerState> state, bool file) {
        TrainerSettings s = half ? sft(20, {"bfloat16", at::kBFloat16, 60, true}) : sft(20);
        s.optimizer.moments = bytes ? "int8" : "float32";
        if (file) s.optimizer.states = "nvme", s.optimizer.states_folder = scratch.path();
        return Trainer(s, std::move(decoder), make_tokenizer(), std::move(state), nullptr, examples());
      };
      Trainer beside = make(make_decoder(), std::nullopt, false),
              file = make(make_decoder(), std::nullopt, true);
      for (int i = 0; i < 10; ++i) EXPECT_EQ(file.step().loss, beside.step().loss) << half << bytes << i;
      EXPECT_TRUE(at::equal(file.decoder().flat(), beside.decoder().flat()));
      Trainer resumed = make(file.decoder().copied(at::kFloat), file.optimizer_state(), false);
      resumed.skip_to(10);
      for (int i = 0; i < 10; ++i) EXPECT_EQ(resumed.step().loss, beside.step().loss) << half << bytes << i;
    }
  TrainerSettings wrong = sft(20);
  wrong.optimizer.states = "gpu";
  EXPECT_THROW(Trainer(wrong, make_decoder(), make_tokenizer(), std::nullopt, nullptr, examples()), Error)
      << "there is none";
  EXPECT_THROW(optimizer_settings_from_json({{"states", "nvme"}}), Error) << "where?";
  EXPECT_THROW(optimizer_settings_from_json({{"states", "disk"}}), Error);
}

// Samples of the policy itself, as warpsmith-generate records them.
std::vector<Example> sampled(const Decoder& decoder, const Tokenizer& tokenizer, int groups, int size) {
  std::vector<Example> out;
  for (int g = 0; g < groups; ++g) {
    const std::string prompt =
        "task " + std::string(static_cast<std::size_t>(g + 1) * 4, static_cast<char>('a' + g)) + ":";
    std::vector<std::uint64_t> keys;
    for (int i = 0; i < size; ++i)
      keys.push_back(random_key({static_cast<std::uint64_t>(g), static_cast<std::uint64_t>(i)}));
    int number = 0;
    for (const model::Sample& s :
         model::sample(decoder, tokenizer.encode_prompt(prompt), keys, {.max_tokens = 40})) {
      Example e{std::to_string(g) + "/" + std::to_string(number),
                prompt,
                "",
                1.0,
                "g" + std::to_string(g),
                number % 2 ? 1.0 : -1.0,
                s.tokens,
                s.log_probabilities};
      out.push_back(std::move(e));
      ++number;
    }
  }
  return out;
}

TrainerSettings grpo(std::int64_t steps) {
  TrainerSettings s = sft(steps);
  s.mode = Mode::kGrpo;
  s.optimizer.learning_rate = 1e-3;
  return s;
}

TEST(Grpo, FirstStepFindsTheSamplersLogProbabilities) {
  const Decoder policy = make_decoder();
  const Tokenizer tokenizer = make_tokenizer();
  std::vector<Example> all = sampled(policy, tokenizer, 3, 6);
  all[4].finished = false;
  for (const Example& e : all) {
    model::PackedBatch batch;
    model::append_sequence(batch, tokenizer.encode_prompt(e.prompt), e.tokens);
    const at::Tensor trained = policy.log_probabilities(batch).detach();
    for (std::size_t t = 0; t < e.tokens.size(); ++t)
      EXPECT_NEAR(trained[static_cast<std::int64_t>(t)].item<float>(), e.log_probabilities[t], 1e-4);
  }
  Trainer trainer(grpo(1), make_decoder(), make_tokenizer(), std::nullopt, &policy, all);
  const StepRecord step = trainer.step();
  EXPECT_NEAR(step.ratio_mean, 1, 1e-4);
  EXPECT_EQ(step.clip_share, 0);
  EXPECT_EQ(step.truncated, 1);
  EXPECT_NEAR(step.kl, 0, 1e-6);
  EXPECT_NEAR(step.loss, 0, 1e-4) << "advantages of a group sum to zero";
  EXPECT_GT(step.gradient_norm, 1e-3);
}

// In bfloat16 what the sampler says is off by rounding: the first ratios are one all the same, also when
// training goes on behind the first step.
TEST(Grpo, OldLogProbabilitiesAreTheTrainersOwnInBFloat16) {
  const Decoder policy = make_decoder();
  const Tokenizer tokenizer = make_tokenizer();
  std::vector<Example> all = sampled(policy, tokenizer, 3, 6);
  for (Example& e : all)
    for (float& one : e.log_probabilities) one += 0.5f;
  TrainerSettings settings = grpo(1);
  settings.placement = at::kBFloat16;
  settings.micro_batch_tokens = 60;
  Trainer trainer(settings, make_decoder(), make_tokenizer(), std::nullopt, &policy, all);
  const StepRecord step = trainer.step();
  EXPECT_NEAR(step.ratio_mean, 1, 2e-3);
  EXPECT_EQ(step.clip_share, 0);
  model::DecoderSettings far = small();
  far.init_deviation = 0.5;
  Decoder later(far);
  later.initialise(7);
  Trainer resumed(settings, std::move(later), make_tokenizer(), std::nullopt, &policy, all, &policy);
  EXPECT_GT(resumed.step().clip_share, 0.1) << "another policy than that which drew them";
}

// What a server has sampled comes as text. The tokens are the text's, the old log-probabilities those of the
// policy that drew them, also where training goes on behind the first step.
TEST(Grpo, TextsOfAServerAreTrainedOnAsSamplesOfOnesOwn) {
  const Decoder policy = make_decoder();
  const Tokenizer tokenizer = make_tokenizer();
  std::vector<Example> own = sampled(policy, tokenizer, 3, 4), served = own;
  own[4].finished = served[4].finished = false;
  for (std::size_t i = 0; i < own.size(); ++i) {
    Example& e = own[i];
    e.completion = served[i].completion = "some answer " + std::to_string(i * 37);
    e.tokens = tokenizer.encode_completion(e.completion);
    if (!e.finished) e.tokens.pop_back();
    model::PackedBatch batch;
    model::append_sequence(batch, tokenizer.encode_prompt(e.prompt), e.tokens);
    const at::Tensor old = policy.log_probabilities(batch).detach().contiguous();
    e.log_probabilities.assign(old.const_data_ptr<float>(), old.const_data_ptr<float>() + old.numel());
    served[i].tokens.clear();
    served[i].log_probabilities.clear();
  }
  Trainer a(grpo(3), make_decoder(), make_tokenizer(), std::nullopt, &policy, own);
  Trainer b(grpo(3), make_decoder(), make_tokenizer(), std::nullopt, &policy, served);
  for (int i = 0; i < 3; ++i) {
    const StepRecord one = a.step(), two = b.step();
    EXPECT_NEAR(one.loss, two.loss, 1e-5);
    EXPECT_NEAR(one.ratio_mean, two.ratio_mean, 1e-5);
    EXPECT_EQ(one.tokens, two.tokens);
    EXPECT_EQ(one.truncated, two.truncated);
  }
  Trainer resumed(grpo(3), b.decoder().copied(at::kFloat), make_tokenizer(), std::nullopt, &policy, served,
                  &policy);
  resumed.skip_to(2);
  EXPECT_GT(std::abs(resumed.step().ratio_mean - 1), 1e-5) << "another policy than that which drew them";
}

TEST(Grpo, StepsMakeRewardedSamplesMoreProbable) {
  const Decoder policy = make_decoder();
  const std::vector<Example> all = sampled(policy, make_tokenizer(), 2, 6);
  TrainerSettings settings = grpo(8);
  settings.epochs = 4;
  Trainer trainer(settings, make_decoder(), make_tokenizer(), std::nullopt, &policy, all);
  StepRecord last;
  for (int i = 0; i < 8; ++i) last = trainer.step();
  EXPECT_GT(last.kl, 0);
  double gain = 0;
  for (const Example& e : all) {
    model::PackedBatch batch;
    model::append_sequence(batch, trainer.tokenizer().encode_prompt(e.prompt), e.tokens);
    gain +=
        e.advantage *
        (trainer.decoder().log_probabilities(batch) - policy.log_probabilities(batch)).mean().item<double>();
  }
  EXPECT_GT(gain, 0.05);
}

TEST(Grpo, ExampleWithoutItsTokensIsRefused) {
  std::vector<Example> all = sampled(make_decoder(), make_tokenizer(), 1, 2);
  all[1].log_probabilities.pop_back();
  EXPECT_THROW(Trainer(grpo(1), make_decoder(), make_tokenizer(), std::nullopt, nullptr, all), Error);
}

TEST(Trainer, LeavesOutWhatExceedsTheContext) {
  std::vector<Example> all = examples();
  all[3].completion = std::string(500, '?');
  const Trainer trainer(sft(3), make_decoder(), make_tokenizer(), std::nullopt, nullptr, all);
  EXPECT_EQ(trainer.left_out(), 1u);
  for (Example& e : all) e.completion = std::string(500, '?');
  EXPECT_THROW(Trainer(sft(3), make_decoder(), make_tokenizer(), std::nullopt, nullptr, all), Error);
  EXPECT_THROW(Trainer(sft(3), make_decoder(), make_tokenizer(), std::nullopt, nullptr, {}), Error);
}

TEST(PlanBatches, EachPassSeesEveryExampleOnce) {
  TrainerSettings s = sft(40);
  s.optimizer.batch_tokens = 10;
  const std::vector<std::int64_t> tokens = {3, 4, 5, 3, 4, 12, 2};
  const auto batches = plan_batches(s, tokens, {});
  ASSERT_EQ(batches.size(), 40u);
  std::vector<std::size_t> sequence;
  for (const auto& batch : batches) {
    std::int64_t sum = 0;
    for (const std::size_t i : batch) sum += tokens[i];
    EXPECT_TRUE(sum <= 10 || batch.size() == 1);
    EXPECT_FALSE(batch.empty());
    sequence.insert(sequence.end(), batch.begin(), batch.end());
  }
  std::set<std::vector<std::size_t>> orders;
  for (std::size_t pass = 0; pass + 7 <= sequence.size(); pass += 7) {
    const std::vector<std::size_t> order(sequence.begin() + static_cast<std::ptrdiff_t>(pass),
                                         sequence.begin() + static_cast<std::ptrdiff_t>(pass) + 7);
    EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), 7u) << "pass at " << pass;
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 2u) << "passes have orders of their own";
  EXPECT_EQ(plan_batches(s, tokens, {}), batches);
}

TEST(PlanBatches, GroupsStayTogetherAndAreSpreadOverTheSteps) {
  TrainerSettings s = grpo(4);
  s.epochs = 2;
  const std::vector<std::string> groups = {"a", "a", "b", "b", "c", "c", "d", "d"};
  const auto batches = plan_batches(s, {}, groups);
  ASSERT_EQ(batches.size(), 4u);
  std::multiset<std::size_t> seen;
  for (const auto& batch : batches) {
    EXPECT_EQ(batch.size(), 4u);
    for (std::size_t i = 0; i < batch.size(); i += 2) EXPECT_EQ(groups[batch[i]], groups[batch[i + 1]]);
    seen.insert(batch.begin(), batch.end());
  }
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(seen.count(i), 2u);
  s.steps = 16;  // more than groups and epochs: one sample a step
  for (const auto& batch : plan_batches(s, {}, groups)) EXPECT_EQ(batch.size(), 1u);
  s.steps = 17;
  EXPECT_THROW(plan_batches(s, {}, groups), Error);
}

TEST(CheckpointSeries, KeepsTheNewestAndTheBestOfItsOwn) {
  const fs::path root = fs::temp_directory_path() / ("warpsmith-series-" + std::to_string(::getpid()));
  const Decoder decoder = make_decoder();
  const Tokenizer tokenizer = make_tokenizer();
  CheckpointSeries other(root / "sft", "other", 1, false), series(root / "sft", "mine", 2, true);
  other.save({"sft", 1, 0.1, {}, Json::object()}, decoder, tokenizer, nullptr);
  const double scores[] = {3, 1, 2, 4, 5};
  for (int i = 0; i < 5; ++i)
    series.save({"sft", 10 + i, scores[i], {}, Json::object()}, decoder, tokenizer, nullptr);
  const auto steps = [&] { return series.whole_steps([](const std::string&) {}); };
  EXPECT_THAT(steps(), ::testing::ElementsAre(14, 13, 11));
  EXPECT_TRUE(fs::exists(root / "sft-1")) << "another job's";
  fs::resize_file(root / "sft-14" / "model.h5", 50);
  std::string damage;
  EXPECT_THAT(series.whole_steps([&](const std::string& d) { damage = d; }), ::testing::ElementsAre(13, 11));
  EXPECT_THAT(damage, ::testing::HasSubstr("model.h5"));
  fs::remove_all(root);
}

}  // namespace
}  // namespace warpsmith::learn

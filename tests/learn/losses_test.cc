// Losses against the formulas of CUDA-L1, worked out token by token; gradients against finite differences.
#include "warpsmith/learn/losses.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "warpsmith/base/error.h"
#include "warpsmith/learn/optimizer.h"

namespace warpsmith::learn {
namespace {

at::Tensor vector(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

void expect_gradient(const std::function<at::Tensor(const at::Tensor&)>& loss,
                     const std::vector<double>& at_point) {
  at::Tensor x = vector(at_point).requires_grad_(true);
  loss(x).backward();
  const at::NoGradGuard guard;
  for (std::size_t i = 0; i < at_point.size(); ++i) {
    std::vector<double> above = at_point, below = at_point;
    above[i] += 1e-6;
    below[i] -= 1e-6;
    const double difference =
        (loss(vector(above)).item<double>() - loss(vector(below)).item<double>()) / 2e-6;
    EXPECT_NEAR(x.grad()[static_cast<std::int64_t>(i)].item<double>(), difference, 1e-7) << "token " << i;
  }
}

TEST(LikelihoodLoss, IsTheWeightedMeanOverTokens) {
  const auto loss = [](const at::Tensor& x) {
    return (x * likelihood_gradient({2, 1}, {1.0, 3.0}, 5.0, x.options())).sum();
  };
  EXPECT_DOUBLE_EQ(loss(vector({-1, -2, -4})).item<double>(), (1 + 2 + 3 * 4) / 5.0);
  expect_gradient(loss, {-1, -2, -4});
}

struct Tokens {
  std::vector<double> now, old, reference;
};
// Two samples of 3 and 2 tokens; ratios inside, above and below the clip range, with either sign of
// advantage.
const Tokens kTokens = {
    {-1.0, -0.5, -2.0, -1.2, -0.7}, {-1.05, -1.0, -1.4, -1.9, -0.1}, {-1.1, -0.2, -2.5, -1.0, -3.0}};

double expected_loss(const GrpoSettings& settings, const std::vector<double>& advantages) {
  const std::vector<std::size_t> sample = {0, 0, 0, 1, 1};
  const double length[] = {3, 2};
  double loss = 0;
  for (std::size_t t = 0; t < 5; ++t) {
    const double a = advantages[sample[t]], ratio = std::exp(kTokens.now[t] - kTokens.old[t]);
    const double clipped = std::min(std::max(ratio, 1 - settings.clip_ratio), 1 + settings.clip_ratio);
    const double d = kTokens.reference[t] - kTokens.now[t];
    const double k = std::min(std::exp(d) - d - 1, settings.kl_clamp);
    loss -= (std::min(ratio * a, clipped * a) - settings.kl * k) / length[sample[t]] / 2;
  }
  return loss;
}

GrpoSamples samples_of(const std::vector<double>& advantages) {
  return {vector(kTokens.old), vector(kTokens.reference), {3, 2}, advantages};
}

TEST(GrpoLoss, EqualsTheFormula) {
  for (const double kl : {0.0, 0.01, 0.5})
    for (const double clamp : {10.0, 0.05})
      for (const std::vector<double>& advantages : {std::vector{1.0, -1.0}, {-0.5, 2.0}}) {
        const GrpoSettings settings{0.2, kl, clamp};
        const auto loss = [&](const at::Tensor& x) {
          return grpo_loss(x, samples_of(advantages), settings, 2).loss;
        };
        EXPECT_NEAR(loss(vector(kTokens.now)).item<double>(), expected_loss(settings, advantages), 1e-12);
        expect_gradient(loss, kTokens.now);
      }
}

TEST(GrpoLoss, CountsWhatItClips) {
  const GrpoTerms terms = grpo_loss(vector(kTokens.now), samples_of({1, 1}), {0.2, 0.01, 10}, 2);
  // exp of 0.05, 0.5, -0.6 | 0.7, -0.6: all but the first leave [0.8, 1.2].
  EXPECT_NEAR(terms.clip_share, 2.0 / 3 + 1.0, 1e-12);
  EXPECT_NEAR(terms.ratio,
              (std::exp(0.05) + std::exp(0.5) + std::exp(-0.6)) / 3 + (std::exp(0.7) + std::exp(-0.6)) / 2,
              1e-12);
  EXPECT_GT(terms.kl, 0);
}

TEST(GrpoLoss, PartsOfAStepAddUp) {
  const GrpoSettings settings{0.2, 0.1, 10};
  const double whole = grpo_loss(vector(kTokens.now), samples_of({1, -1}), settings, 2).loss.item<double>();
  const auto part = [&](std::size_t begin, std::size_t end, double advantage) {
    const auto cut = [&](const std::vector<double>& v) {
      return vector(
          {v.begin() + static_cast<std::ptrdiff_t>(begin), v.begin() + static_cast<std::ptrdiff_t>(end)});
    };
    const GrpoSamples samples{
        cut(kTokens.old), cut(kTokens.reference), {static_cast<std::int64_t>(end - begin)}, {advantage}};
    return grpo_loss(cut(kTokens.now), samples, settings, 2).loss.item<double>();
  };
  EXPECT_NEAR(part(0, 3, 1) + part(3, 5, -1), whole, 1e-12);
}

TEST(GrpoLoss, StaysFiniteWherePoliciesHaveParted) {
  at::Tensor now = vector({-800.0, -0.1}).requires_grad_(true);
  const GrpoTerms terms =
      grpo_loss(now, {vector({-0.1, -900.0}), vector({-0.1, -900.0}), {2}, {1.0}}, {0.2, 0.01, 10}, 1);
  terms.loss.backward();
  EXPECT_TRUE(std::isfinite(terms.loss.item<double>()));
  EXPECT_TRUE(now.grad().isfinite().all().item<bool>());
}

TEST(LearningRate, WarmsUpAndFallsToItsFinalShare) {
  OptimizerSettings s;
  s.learning_rate = 1;
  s.final_rate = 0.1;
  s.warmup_steps = 50;
  EXPECT_DOUBLE_EQ(learning_rate(s, 0, 1000), 1.0 / 50);
  EXPECT_DOUBLE_EQ(learning_rate(s, 49, 1000), 1);
  EXPECT_DOUBLE_EQ(learning_rate(s, 50, 1000), 1);
  EXPECT_NEAR(learning_rate(s, 525, 1000), 0.55, 1e-9);
  EXPECT_NEAR(learning_rate(s, 999, 1000), 0.1, 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 0, 4), 1) << "a short job has no warm-up";
  EXPECT_DOUBLE_EQ(learning_rate(s, 1, 20), 1) << "a tenth of the steps at most";
  s.final_rate = 1;
  for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(learning_rate(s, i, 4), 1);
}

TEST(OptimizerSettings, MistakesAreRefused) {
  EXPECT_NO_THROW(optimizer_settings_from_json({{"learning_rate", 1e-3}, {"something", 1}}));
  for (const Json& bad : {Json{{"learning_rate", 0}}, Json{{"beta1", 1.0}}, Json{{"batch_tokens", 0}},
                          Json{{"keep_last", 0}}, Json{{"learning_rate", "fast"}}, Json{{"final_rate", 2}}})
    EXPECT_THROW(optimizer_settings_from_json(bad), Error) << bad;
}

}  // namespace
}  // namespace warpsmith::learn

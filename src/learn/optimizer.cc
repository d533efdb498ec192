#include "warpsmith/learn/optimizer.h"

#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "warpsmith/base/error.h"
#include "warpsmith/model/kernels.h"

namespace warpsmith::learn {

OptimizerSettings optimizer_settings_from_json(const Json& json) {
  OptimizerSettings s;
  const auto take = [&](const char* key, auto& value) {
    if (json.contains(key)) value = json_at<std::decay_t<decltype(value)>>(json, key, "optimizer settings");
  };
  take("learning_rate", s.learning_rate);
  take("final_rate", s.final_rate);
  take("warmup_steps", s.warmup_steps);
  take("weight_decay", s.weight_decay);
  take("beta1", s.beta1);
  take("beta2", s.beta2);
  take("epsilon", s.epsilon);
  take("clip_norm", s.clip_norm);
  take("batch_tokens", s.batch_tokens);
  take("checkpoint_every", s.checkpoint_every);
  take("keep_last", s.keep_last);
  take("keep_best", s.keep_best);
  const auto require = [](bool condition, const char* message) {
    if (!condition) throw Error(std::string("optimizer settings: ") + message, kExitUsage);
  };
  require(s.learning_rate > 0 && std::isfinite(s.learning_rate), "learning_rate must be positive");
  require(s.final_rate >= 0 && s.final_rate <= 1, "final_rate must be in [0, 1]");
  require(s.beta1 >= 0 && s.beta1 < 1 && s.beta2 >= 0 && s.beta2 < 1, "beta1 and beta2 must be in [0, 1)");
  require(s.weight_decay >= 0 && s.clip_norm >= 0 && s.warmup_steps >= 0, "nothing may be negative");
  require(s.epsilon > 0 && s.batch_tokens > 0, "epsilon and batch_tokens must be positive");
  require(s.keep_last > 0 && s.checkpoint_every >= 0,
          "keep_last must be at least 1, checkpoint_every at least 0");
  return s;
}

double learning_rate(const OptimizerSettings& settings, std::int64_t index, std::int64_t steps) {
  const std::int64_t warmup = std::min(settings.warmup_steps, steps / 10);
  if (index < warmup)
    return settings.learning_rate * static_cast<double>(index + 1) / static_cast<double>(warmup);
  const double progress =
      static_cast<double>(index - warmup) / static_cast<double>(std::max<std::int64_t>(1, steps - warmup));
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, progress)));
  return settings.learning_rate * (settings.final_rate + (1 - settings.final_rate) * cosine);
}

AdamW::AdamW(const OptimizerSettings& settings, const model::Decoder& decoder,
             std::optional<model::OptimizerState> state)
    : settings_(settings), decay_(at::zeros_like(decoder.flat())) {
  if (state) {
    state_ = std::move(*state);
    if (state_.first.sizes() != decoder.flat().sizes())
      throw Error("optimizer state of a model of another size");
  } else {
    state_ = {at::zeros_like(decoder.flat()), at::zeros_like(decoder.flat()), 0};
  }
  const float* base = decoder.flat().const_data_ptr<float>();
  for (const model::NamedTensor& p : decoder.parameters())
    if (p.decays)
      std::fill_n(decay_.mutable_data_ptr<float>() + (p.tensor.const_data_ptr<float>() - base),
                  p.tensor.numel(), static_cast<float>(settings.weight_decay));
}

double AdamW::step(model::Decoder& decoder, double rate) {
  const model::Kernels<float>& k = model::kernels<float>();
  const float* gradient = decoder.flat_gradient().const_data_ptr<float>();
  const std::int64_t n = decoder.flat().numel();
  const double norm = std::sqrt(k.sum_of_squares(gradient, n));
  if (!std::isfinite(norm))
    throw Error("the gradient is not finite: training has diverged (a lower learning_rate may help)",
                kExitFailed);
  const double factor =
      settings_.clip_norm > 0 && norm > settings_.clip_norm ? settings_.clip_norm / norm : 1.0;
  ++state_.steps;
  const auto t = static_cast<double>(state_.steps);
  k.adamw(decoder.flat().mutable_data_ptr<float>(), gradient, state_.first.mutable_data_ptr<float>(),
          state_.second.mutable_data_ptr<float>(), decay_.const_data_ptr<float>(), n, factor,
          {rate, settings_.beta1, settings_.beta2, settings_.epsilon, 1 - std::pow(settings_.beta1, t),
           1 - std::pow(settings_.beta2, t)});
  return norm;
}

}  // namespace warpsmith::learn

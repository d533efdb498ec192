#include "warpsmith/learn/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

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

AdamW::AdamW(const OptimizerSettings& settings, const model::Decoder& decoder, const at::Tensor& weights,
             std::optional<model::OptimizerState> state, model::Collective* ranks)
    : settings_(settings), ranks_(ranks) {
  const at::Tensor& flat = decoder.trained_flat();
  all_ = flat.numel();
  part_ = ranks ? ranks->own_part(all_) : model::Part{0, all_};
  const auto wide = flat.options().dtype(at::kFloat);
  master_ = flat.scalar_type() == at::kFloat ? part_.of(flat)
                                             : part_.of(weights).to(wide.device(), at::kFloat, false, true);
  const auto own = [&](const at::Tensor& moments) {  // a copy, so that the others' parts go
    return part_.of(moments).to(wide.device(), at::kFloat, false, ranks != nullptr);
  };
  if (state) {
    if (state->first.sizes() != flat.sizes()) throw Error("optimizer state of a model of another size");
    own_ = {own(state->first), own(state->second), state->steps};
  } else {
    own_ = {at::zeros({part_.count}, wide), at::zeros({part_.count}, wide), 0};
  }
  const bool loops = decoder.backend() == model::Backend::kLoops;
  if (!loops && !model::fused_for(flat)) return;
  // Each parameter begins at a multiple of 16 elements, and so does each part.
  const std::int64_t grain = loops ? 1 : 16;
  at::Tensor decay = at::zeros({all_ / grain}, loops ? at::kFloat : at::kByte);
  for (const model::NamedTensor& p : decoder.trained())
    if (p.decays)
      decay
          .narrow(0, (p.tensor.storage_offset() - flat.storage_offset()) / grain,
                  (p.tensor.numel() + grain - 1) / grain)
          .fill_(loops ? settings.weight_decay : 1);
  decay_ = decay.narrow(0, part_.begin / grain, part_.count / grain).to(flat.device());
}

double AdamW::step(model::Decoder& decoder, double rate) {
  const at::NoGradGuard guard;
  if (ranks_) ranks_->reduce_parts(decoder.flat_gradient());
  const at::Tensor gradient = part_.of(decoder.flat_gradient());
  const bool loops = decoder.backend() == model::Backend::kLoops;
  double squares = 0;
  if (loops)
    squares = model::kernels<float>().sum_of_squares(gradient.const_data_ptr<float>(), gradient.numel());
  else
    squares =
        std::pow(at::linalg_vector_norm(gradient, 2, std::nullopt, false, at::kFloat).item().toDouble(), 2);
  const double norm = std::sqrt(ranks_ ? ranks_->sums({squares})[0] : squares);
  if (!std::isfinite(norm))
    throw Error("the gradient is not finite: training has diverged (a lower learning_rate may help)",
                kExitFailed);
  const double factor =
      settings_.clip_norm > 0 && norm > settings_.clip_norm ? settings_.clip_norm / norm : 1.0;
  ++own_.steps;
  if (loops)
    step_by_loops(gradient, factor, rate);
  else if (const model::Fused* const fused = model::fused_for(gradient))
    step_fused(*fused, decoder, factor, rate);
  else
    step_by_operators(decoder, factor, rate);
  if (ranks_) ranks_->gather_parts(decoder.trained_flat());
  return norm;
}

void AdamW::step_by_loops(const at::Tensor& gradient, double factor, double rate) {
  const auto t = static_cast<double>(own_.steps);
  model::kernels<float>().adamw(master_.mutable_data_ptr<float>(), gradient.const_data_ptr<float>(),
                                own_.first.mutable_data_ptr<float>(), own_.second.mutable_data_ptr<float>(),
                                decay_.const_data_ptr<float>(), gradient.numel(), factor,
                                {rate, settings_.beta1, settings_.beta2, settings_.epsilon,
                                 1 - std::pow(settings_.beta1, t), 1 - std::pow(settings_.beta2, t)});
}

void AdamW::step_fused(const model::Fused& fused, model::Decoder& decoder, double factor, double rate) {
  fused.adamw(part_.of(decoder.trained_flat()), part_.of(decoder.flat_gradient()), master_, own_.first,
              own_.second, decay_,
              {rate, settings_.beta1, settings_.beta2, settings_.epsilon, settings_.weight_decay, factor,
               own_.steps});
}

// Parameters in runs of equal decay, each at most kRun elements, so that the float32 copies of gradients that
// the fused operator wants stay small.
void AdamW::step_by_operators(model::Decoder& decoder, double factor, double rate) {
  constexpr std::int64_t kRun = std::int64_t{1} << 24;
  const at::Tensor &flat = decoder.trained_flat(), &gradient = decoder.flat_gradient();
  const at::Tensor step = at::full({}, static_cast<double>(own_.steps), master_.options());
  const auto update = [&](std::int64_t begin, std::int64_t end, double decay) {
    begin = std::max(begin, part_.begin);
    end = std::min(end, part_.begin + part_.count);
    if (begin >= end) return;
    const std::int64_t n = end - begin, here = begin - part_.begin;
    at::Tensor weights = master_.narrow(0, here, n);
    const at::Tensor wide = gradient.narrow(0, begin, n).to(at::kFloat) * factor;
    at::_fused_adamw_({weights}, {wide}, {own_.first.narrow(0, here, n)}, {own_.second.narrow(0, here, n)},
                      {}, {step}, rate, settings_.beta1, settings_.beta2, decay, settings_.epsilon, false,
                      false);
    if (flat.scalar_type() != at::kFloat) flat.narrow(0, begin, n).copy_(weights);
  };
  const std::vector<model::NamedTensor>& all = decoder.trained();
  const auto begin_of = [&](std::size_t i) {
    return i < all.size() ? all[i].tensor.storage_offset() - flat.storage_offset() : flat.numel();
  };
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i + 1;
    while (end < all.size() && all[end].decays == all[i].decays) ++end;
    for (std::int64_t at = begin_of(i); at < begin_of(end); at += kRun)
      update(at, std::min(at + kRun, begin_of(end)), all[i].decays ? settings_.weight_decay : 0);
    i = end;
  }
}

at::Tensor AdamW::of_all_ranks(const at::Tensor& own) const {
  if (!ranks_) return own.cpu();
  const bool takes = ranks_->rank() == 0;
  at::Tensor whole = at::empty({takes ? all_ : 0}, at::kFloat);
  for (int r = 0; r < ranks_->size(); ++r) {
    const model::Part part = ranks_->part(all_, r);
    const at::Tensor here = r == ranks_->rank() ? own.contiguous() : at::empty({part.count}, own.options());
    ranks_->broadcast(here, r);
    if (takes) part.of(whole).copy_(here);
  }
  return whole;
}

model::OptimizerState AdamW::state() const {
  return {of_all_ranks(own_.first), of_all_ranks(own_.second), own_.steps};
}

void AdamW::copy_master(const at::Tensor& to) const {
  const at::NoGradGuard guard;
  const at::Tensor whole = ranks_ ? of_all_ranks(master_) : master_;
  if (whole.numel() == to.numel()) at::Tensor(to).copy_(whole);
}

std::int64_t AdamW::bytes() const {
  std::int64_t sum = 0;
  for (const at::Tensor& x : {master_, own_.first, own_.second})
    sum += x.numel() * static_cast<std::int64_t>(x.element_size());
  return sum;
}

}  // namespace warpsmith::learn

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
#include "warpsmith/base/log.h"
#include "warpsmith/base/text.h"
#include "warpsmith/model/kernels.h"
#include "warpsmith/process/machine.h"

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
  take("moments", s.moments);
  take("deterministic", s.deterministic);
  take("states", s.states);
  take("states_folder", s.states_folder);
  const auto require = [](bool condition, const char* message) {
    if (!condition) throw Error(std::string("optimizer settings: ") + message, kExitUsage);
  };
  require(s.learning_rate > 0 && std::isfinite(s.learning_rate), "learning_rate must be positive");
  require(s.final_rate >= 0 && s.final_rate <= 1, "final_rate must be in [0, 1]");
  require(s.beta1 >= 0 && s.beta1 < 1 && s.beta2 >= 0 && s.beta2 < 1, "beta1 and beta2 must be in [0, 1)");
  require(s.weight_decay >= 0 && s.clip_norm >= 0 && s.warmup_steps >= 0, "nothing may be negative");
  require(s.epsilon > 0 && s.batch_tokens > 0, "epsilon and batch_tokens must be positive");
  require(s.moments == "float32" || s.moments == "int8", "moments must be float32 or int8");
  require(s.states == "auto" || s.states == "gpu" || s.states == "host" || s.states == "nvme",
          "states must be auto, gpu, host or nvme");
  require(s.states != "nvme" || !s.states_folder.empty(), "states: nvme wants a states_folder");
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

StatesPlan plan_states(const OptimizerSettings& settings, std::int64_t n, bool with_master,
                       std::optional<std::uint64_t> room, std::uint64_t host) {
  StatesPlan plan;
  const double each = model::state_bytes(with_master, settings.moments == "int8");
  plan.beside = settings.states == "host" || settings.states == "nvme" ? 0 : n;
  if (settings.states == "auto" && room && each * static_cast<double>(n) > static_cast<double>(*room)) {
    // Pieces on their way take some of it.
    const double left =
        static_cast<double>(*room) - model::kStatesPieces * each * static_cast<double>(plan.piece);
    plan.beside = static_cast<std::int64_t>(std::max(0.0, left) / each);
  }
  constexpr double kShareOfHost = 0.9;
  const double elsewhere = each * static_cast<double>(n - plan.beside);
  const bool host_has_room = elsewhere <= kShareOfHost * static_cast<double>(host);
  if (settings.states == "nvme" || (settings.states == "auto" && !host_has_room))
    plan.folder = settings.states_folder;
  if (plan.folder.empty() && !host_has_room) {
    const auto size = [](double bytes) { return format_size(static_cast<std::uint64_t>(bytes)); };
    throw Error("the optimiser's states do not fit: " + size(elsewhere) +
                " of them would lie on the host, which has " + size(static_cast<double>(host)) +
                ". `states: nvme` with a `states_folder`, `moments: int8`, `lora` or more GPUs take less");
  }
  return plan;
}

AdamW::AdamW(const OptimizerSettings& settings, const model::Decoder& decoder, const at::Tensor& weights,
             std::optional<model::OptimizerState> state, model::Collective* ranks,
             std::optional<std::uint64_t> room)
    : settings_(settings), ranks_(ranks) {
  const at::Tensor& flat = decoder.trained_flat();
  device_ = flat.device();
  all_ = flat.numel();
  part_ = ranks ? ranks->own_part(all_) : model::Part{0, all_};
  if (state && state->first.sizes() != flat.sizes())
    throw Error("optimizer state of a model of another size");
  const bool with_master = flat.scalar_type() != at::kFloat;
  StatesPlan plan{.beside = part_.count};
  if (!flat.is_cpu())
    plan = plan_states(settings, part_.count, with_master, room, process::available_memory());
  else if (settings.states == "gpu")
    throw Error("`states: gpu`, and training is on the CPU", kExitUsage);
  else if (settings.states == "nvme")
    plan.beside = 0, plan.folder = settings.states_folder;
  states_.emplace(part_.of(flat), with_master ? part_.of(weights) : at::Tensor(),
                  state ? part_.of(state->first) : at::Tensor(),
                  state ? part_.of(state->second) : at::Tensor(), settings.moments == "int8", plan);
  if (plan.beside < part_.count) log_info("the optimiser's states: " + to_string(states_->bytes()));
  steps_ = state ? state->steps : 0;
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
  states_->fetch();
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
  ++steps_;
  states_->each([&](const States::Run& run) {
    const Update update{run, factor, rate};
    if (loops)
      step_by_loops(decoder, update);
    else if (const model::Fused* const fused = model::fused_for(gradient))
      step_fused(*fused, decoder, update);
    else
      step_by_operators(decoder, update);
  });
  if (ranks_) ranks_->gather_parts(decoder.trained_flat());
  return norm;
}

void AdamW::step_by_loops(model::Decoder& decoder, const Update& u) {
  const auto t = static_cast<double>(steps_);
  const auto here = [&](const at::Tensor& of_part) { return of_part.narrow(0, u.begin, u.count); };
  model::kernels<float>().adamw(u.master.mutable_data_ptr<float>(),
                                here(part_.of(decoder.flat_gradient())).const_data_ptr<float>(),
                                u.first.mutable_data_ptr<float>(), u.second.mutable_data_ptr<float>(),
                                here(decay_).const_data_ptr<float>(), u.count, u.factor,
                                {u.rate, settings_.beta1, settings_.beta2, settings_.epsilon,
                                 1 - std::pow(settings_.beta1, t), 1 - std::pow(settings_.beta2, t)});
}

void AdamW::step_fused(const model::Fused& fused, model::Decoder& decoder, const Update& u) {
  const auto here = [&](const at::Tensor& of_part) { return of_part.narrow(0, u.begin, u.count); };
  fused.adamw(here(part_.of(decoder.trained_flat())), here(part_.of(decoder.flat_gradient())), u.master,
              u.first, u.second, decay_.narrow(0, u.begin / 16, u.count / 16),
              {u.rate, settings_.beta1, settings_.beta2, settings_.epsilon, settings_.weight_decay, u.factor,
               steps_});
}

// Parameters in runs of equal decay, each at most kRun elements, so that the float32 copies of gradients that
// the fused operator wants stay small.
void AdamW::step_by_operators(model::Decoder& decoder, const Update& u) {
  constexpr std::int64_t kRun = std::int64_t{1} << 24;
  const at::Tensor &flat = decoder.trained_flat(), &gradient = decoder.flat_gradient();
  const at::Tensor step = at::full({}, static_cast<double>(steps_), u.master.options());
  const std::int64_t first = part_.begin + u.begin;  // of all elements
  const auto update = [&](std::int64_t begin, std::int64_t end, double decay) {
    begin = std::max(begin, first);
    end = std::min(end, first + u.count);
    if (begin >= end) return;
    const std::int64_t n = end - begin, here = begin - first;
    at::Tensor weights = u.master.narrow(0, here, n);
    const at::Tensor wide = gradient.narrow(0, begin, n).to(at::kFloat) * u.factor;
    at::_fused_adamw_({weights}, {wide}, {u.first.narrow(0, here, n)}, {u.second.narrow(0, here, n)}, {},
                      {step}, u.rate, settings_.beta1, settings_.beta2, decay, settings_.epsilon, false,
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

void AdamW::copy_all_ranks(States::Which which, const at::Tensor& to) const {
  const at::NoGradGuard guard;
  const bool takes = !ranks_ || ranks_->rank() == 0;
  for (int r = 0; r < (ranks_ ? ranks_->size() : 1); ++r) {
    const model::Part part = ranks_ ? ranks_->part(all_, r) : part_;
    for (std::int64_t begin = 0; begin < part.count; begin += Moments::kAtATime) {
      const std::int64_t n = std::min(Moments::kAtATime, part.count - begin);
      at::Tensor here;
      if (!ranks_ || r == ranks_->rank()) here = states_->read(which, begin);
      if (ranks_) {
        here = here.defined() ? here.to(device_).contiguous()
                              : at::empty({n}, at::TensorOptions(at::kFloat).device(device_));
        ranks_->broadcast(here, r);
      }
      if (takes) part.of(to).narrow(0, begin, n).copy_(here);
    }
  }
}

model::OptimizerState AdamW::state() const {
  const std::int64_t n = !ranks_ || ranks_->rank() == 0 ? all_ : 0;
  model::OptimizerState state{at::empty({n}, at::kFloat), at::empty({n}, at::kFloat), steps_};
  copy_all_ranks(States::Which::kFirst, state.first);
  copy_all_ranks(States::Which::kSecond, state.second);
  return state;
}

void AdamW::copy_master(const at::Tensor& to) const { copy_all_ranks(States::Which::kMaster, to); }

}  // namespace warpsmith::learn

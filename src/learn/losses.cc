#include "warpsmith/learn/losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/tensor.h>

namespace warpsmith::learn {

namespace {

// values[i] for every token of sample i.
at::Tensor spread(const std::vector<double>& values, const std::vector<std::int64_t>& lengths,
                  const at::TensorOptions& options) {
  std::vector<double> all;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    all.insert(all.end(), static_cast<std::size_t>(lengths[i]), values[i]);
  return at::tensor(all, at::kDouble).to(options.device(), options.dtype().toScalarType());
}

}  // namespace

at::Tensor likelihood_gradient(const std::vector<std::int64_t>& lengths, const std::vector<double>& weights,
                               double weighted_tokens, const at::TensorOptions& options) {
  return spread(weights, lengths, options) * (-1.0 / weighted_tokens);
}

GrpoTerms grpo_loss(const at::Tensor& log_probabilities, const GrpoSamples& samples,
                    const GrpoSettings& settings, std::int64_t samples_in_step) {
  std::vector<double> shares;  // of one token in its sample
  for (const std::int64_t length : samples.lengths)
    shares.push_back(length ? 1.0 / static_cast<double>(length) : 0);
  const at::Tensor share = spread(shares, samples.lengths, log_probabilities.options());
  const at::Tensor advantage = spread(samples.advantages, samples.lengths, log_probabilities.options());
  // Far outside the clip range the ratio's size does not matter any more, but infinity times zero would.
  const at::Tensor ratio = (log_probabilities - samples.old_log_probabilities).clamp(-20.0, 20.0).exp();
  const at::Tensor clipped = ratio.clamp(1.0 - settings.clip_ratio, 1.0 + settings.clip_ratio);
  at::Tensor objective = at::minimum(ratio * advantage, clipped * advantage);
  GrpoTerms terms;
  if (samples.reference_log_probabilities.defined()) {
    const at::Tensor d = (samples.reference_log_probabilities - log_probabilities).clamp(-20.0, 20.0);
    const at::Tensor k = (d.exp() - d - 1.0).clamp_max(settings.kl_clamp);
    if (settings.kl != 0) objective = objective - k * settings.kl;
    terms.kl = (k.detach() * share).sum().item().toDouble();
  }
  terms.loss = (objective * share).sum() * (-1.0 / static_cast<double>(samples_in_step));
  const at::Tensor r = ratio.detach();
  terms.entropy = -(log_probabilities.detach() * share).sum().item().toDouble();
  terms.ratio = (r * share).sum().item().toDouble();
  terms.clip_share = ((r != clipped.detach()).to(share.scalar_type()) * share).sum().item().toDouble();
  return terms;
}

}  // namespace warpsmith::learn

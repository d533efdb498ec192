// Losses as functions of log-probabilities. Vectors run over the completion tokens of a batch, sample after
// sample.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace warpsmith::learn {

// The loss of likelihood is the sum over tokens of -weight[sample] * log_probability, divided by
// `weighted_tokens` (the sum of weight * tokens over the whole step, of which this may be a part). Of this
// the gradient by each log-probability: -weight[sample] / weighted_tokens.
at::Tensor likelihood_gradient(const std::vector<std::int64_t>& lengths, const std::vector<double>& weights,
                               double weighted_tokens, const at::TensorOptions& options);

struct GrpoSettings {
  double clip_ratio = 0.2;  // ε
  double kl = 0.01;         // β
  double kl_clamp = 10.0;   // most that one token's KL estimate may be
};

// One part of a step: samples of one or more groups.
struct GrpoSamples {
  at::Tensor old_log_probabilities;        // of the policy that sampled, as the sampler reported them
  at::Tensor reference_log_probabilities;  // undefined where kl is 0
  std::vector<std::int64_t> lengths;       // tokens of each sample
  std::vector<double> advantages;          // r̂ of each sample, normalised in its group
};

struct GrpoTerms {
  at::Tensor loss;  // scalar
  double kl = 0;    // sums over samples of the mean over their tokens; divide by the step's samples
  double clip_share = 0;
  double ratio = 0;
  double entropy = 0;  // of -log π of the sampled tokens: an estimate of the policy's entropy
};

// -J of CUDA-L1 and DeepSeekMath (2402.03300): with ρ_t = exp(log π - log π_old) of each token,
//   J = 1/G Σ_i 1/|o_i| Σ_t [ min(ρ_t r̂_i, clip(ρ_t, 1-ε, 1+ε) r̂_i) - β k_t ]
// where k_t = exp(d) - d - 1, d = log π_ref - log π (Schulman's k3 estimate of KL(π‖π_ref)), at most
// kl_clamp. G: `samples_in_step`, the samples of the whole step, so that parts of a step add up.
GrpoTerms grpo_loss(const at::Tensor& log_probabilities, const GrpoSamples& samples,
                    const GrpoSettings& settings, std::int64_t samples_in_step);

}  // namespace warpsmith::learn

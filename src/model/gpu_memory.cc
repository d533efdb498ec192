#include "warpsmith/model/gpu_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpsmith::model {

namespace {

std::uint64_t bytes_of(std::int64_t elements, bool bfloat16) {
  return static_cast<std::uint64_t>(elements) * (bfloat16 ? 2 : 4);
}

// Of the MLP that a token of an ordinary layer goes through.
std::int64_t hidden_of(const DecoderSettings& s) {
  return s.experts.experts > 0 ? (s.experts.chosen + s.experts.shared) * s.experts.hidden : s.hidden;
}

// That a layer keeps of a token: both sums and both normed rows, queries, keys and values, what attention
// gives, gate, up and their product.
std::int64_t kept_of_layer(const DecoderSettings& s) {
  const std::int64_t qkv =
      s.latent.kv_rank > 0 ? s.heads * (2 * s.head_dim() + s.value_dim()) : s.qkv_width();
  return 4 * s.width + qkv + s.attention_width() + 3 * hidden_of(s);
}

std::int64_t logits(const DecoderSettings& s, std::int64_t rows) {
  return std::min(rows, std::max<std::int64_t>(1, kLogitsAtATime / s.vocabulary)) * s.vocabulary;
}

}  // namespace

std::string to_string(const GpuMemory& memory) {
  const auto gib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1ull << 30); };
  std::string parts;
  const auto add = [&](const char* name, std::uint64_t bytes) {
    if (bytes > 0) parts += fmt::format("{}{} {:.1f}", parts.empty() ? ": " : ", ", name, gib(bytes));
  };
  add("weights", memory.weights);
  add("gradients", memory.gradients);
  add("optimiser", memory.optimizer);
  add("activations", memory.activations);
  add("keys and values", memory.cache);
  return fmt::format("{:.1f} GiB{}", gib(memory.all()), parts);
}

double state_bytes(bool with_master, bool in_bytes) {
  return (with_master ? 4 : 0) + (in_bytes ? 2 + 2. * sizeof(float) / 256 : 8);
}

std::uint64_t room_for_states(std::uint64_t free, const GpuMemory& computed) {
  constexpr double kMore = 1.25;  // than activations are said to take
  constexpr std::uint64_t kApart = 2ull << 30;
  const auto wanted = kApart + static_cast<std::uint64_t>(kMore * static_cast<double>(computed.activations));
  return free > wanted ? free - wanted : 0;
}

GpuMemory training_memory(const DecoderSettings& settings, const TrainedOnGpu& how) {
  const bool lora = settings.lora.rank > 0;
  const std::int64_t base = parameter_count(settings), adapters = lora ? adapter_count(settings) : 0;
  const std::int64_t trained = lora ? adapters : base;
  GpuMemory m;
  m.weights = bytes_of(base + adapters, how.bfloat16);
  if (how.reference && !lora) m.weights += bytes_of(base, how.bfloat16);
  m.gradients = bytes_of(trained, how.bfloat16);
  // In float32 the weights are the master's.
  const double each = state_bytes(how.bfloat16, how.moments_in_bytes);
  m.optimizer = static_cast<std::uint64_t>(each * static_cast<double>(trained) / std::max(1, how.ranks));
  if (how.states_elsewhere)
    m.optimizer = std::min(m.optimizer, static_cast<std::uint64_t>(each * kStatesPieces * kStatesPiece));
  const std::int64_t layer = kept_of_layer(settings);
  const std::int64_t kept =
      how.recompute ? settings.layers * settings.width + layer : settings.layers * layer;
  m.activations = bytes_of(how.tokens * kept + logits(settings, how.tokens), how.bfloat16);
  return m;
}

GpuMemory sampling_memory(const DecoderSettings& settings, const SampledOnGpu& how) {
  const std::int64_t heads = settings.latent.kv_rank > 0 ? settings.heads : settings.kv_heads;
  GpuMemory m;
  m.weights = bytes_of(parameter_count(settings), how.bfloat16);
  m.cache = bytes_of(
      how.samples * how.places * settings.layers * heads * (settings.head_dim() + settings.value_dim()),
      how.bfloat16);
  m.activations = bytes_of(how.samples * settings.vocabulary, how.bfloat16);
  return m;
}

}  // namespace warpsmith::model

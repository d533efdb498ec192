// The sizes of a decoder and what differs between families. No torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/tokenizer/byte_pairs.h"

namespace warpsmith::model {

using Token = tokenizer::Token;

// How rotary frequencies are changed for contexts that are longer than those that the model began with: as
// transformers' modeling_rope_utils.py has it.
struct RopeScaling {
  enum class Kind { kNone, kLinear, kLlama3, kYarn };
  Kind kind = Kind::kNone;
  double factor = 1;
  double original_context = 0;                   // llama3, yarn
  double low_frequency = 1, high_frequency = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;          // yarn
  double attention_factor = 1;                   // yarn: sines and cosines are multiplied by it
  bool truncate = true;                          // yarn: whole dimensions bound the ramp
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

// Low-rank adapters (Hu et al. 2021): the model's own weights stay as they are.
struct LoraSettings {
  std::int64_t rank = 0;  // 0: none
  double alpha = 16;
  std::vector<std::string> targets;  // of kLoraTargets, in that order
  double scale() const { return rank > 0 ? alpha / static_cast<double>(rank) : 0; }
  friend bool operator==(const LoraSettings&, const LoraSettings&) = default;
};
// Matrices of a layer, by the names that transformers and PEFT have for them.
inline constexpr const char* kLoraTargets[] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                               "gate_proj", "up_proj", "down_proj"};

// A mixture of experts in the place of the MLP, in layers from `first_layer` on. experts 0: none.
struct ExpertSettings {
  std::int64_t experts = 0, chosen = 0;  // of each layer; for a token
  std::int64_t hidden = 0;               // width inside each
  std::int64_t shared = 0;               // as wide as so many experts: an MLP that every token goes through
  std::int64_t first_layer = 0;
  // The router's scores are a sigmoid, and the choice is by score and a bias of each expert (DeepSeek V3);
  // else a softmax.
  bool sigmoid = false;
  bool normalised = false;  // weights of the chosen ones sum to 1
  double scaling = 1;       // the weights are multiplied by it
  // Experts come in groups, and are chosen from the best groups alone: by a group's best score, with
  // `sigmoid` by the sum of its two best.
  std::int64_t groups = 1, chosen_groups = 1;
  friend bool operator==(const ExpertSettings&, const ExpertSettings&) = default;
};

// Multi-head latent attention (DeepSeek V2): keys and values are made of one narrow vector a token. kv_rank
// 0: none.
struct LatentSettings {
  std::int64_t kv_rank = 0, q_rank = 0;  // q_rank 0: queries are made of the token itself
  std::int64_t plain_size = 0;           // of a head's query and key: elements without positions,
  std::int64_t rope_size = 0;   // and those behind them that are rotated; of keys, shared by all heads
  std::int64_t value_size = 0;  // of a head's value
  bool interleaved = true;      // pairs that turn together are neighbours
  double score_factor = 1;      // scores are multiplied by it as well
  friend bool operator==(const LatentSettings&, const LatentSettings&) = default;
};

struct DecoderSettings {
  std::int64_t layers = 4, width = 128, heads = 4, kv_heads = 2, hidden = 352, context = 1024,
               vocabulary = 1024;
  double rope_base = 10000.0, norm_epsilon = 1e-6, init_deviation = 0.05;
  bool qkv_bias = true;        // as Qwen2; Llama has none
  bool tied = true;            // the embedding is the head as well
  bool qk_norm = false;        // queries and keys are normed head by head, as in Qwen3
  std::int64_t head_size = 0;  // of one head; 0: width / heads
  RopeScaling rope_scaling;
  LoraSettings lora;
  // As StarCoder2: LayerNorm, biases of all matrices, an MLP without gate behind a GELU (by tanh).
  bool layer_norm = false, biases = false, gelu = false;
  ExpertSettings experts;
  LatentSettings latent;
  std::int64_t head_dim() const {  // of queries and keys
    return latent.kv_rank > 0 ? latent.plain_size + latent.rope_size
           : head_size > 0    ? head_size
                              : width / heads;
  }
  std::int64_t rope_dim() const { return latent.kv_rank > 0 ? latent.rope_size : head_dim(); }
  std::int64_t value_dim() const { return latent.kv_rank > 0 ? latent.value_size : head_dim(); }
  std::int64_t attention_width() const { return heads * value_dim(); }
  bool has_experts(std::int64_t layer) const { return experts.experts > 0 && layer >= experts.first_layer; }
  // A plain decoder of the Llama family.
  bool is_plain() const {
    return !layer_norm && !biases && !gelu && experts.experts == 0 && latent.kv_rank == 0;
  }
  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim(); }
  friend bool operator==(const DecoderSettings&, const DecoderSettings&) = default;
};
Json to_json(const DecoderSettings& settings);
// Missing keys keep their defaults, unknown ones are ignored; throws Error (exit code 2) for sizes that do
// not fit together.
DecoderSettings decoder_settings_from_json(const Json& json);

// A parameter of such a decoder: its name and shape.
struct ParameterShape {
  std::string name;
  std::vector<std::int64_t> shape;
};
// All of them, in the order in which they lie in memory.
std::vector<ParameterShape> parameters_of(const DecoderSettings& settings);
std::int64_t parameter_count(const DecoderSettings& settings);

// Adapters, two a target: "layers.<l>.<target>.a" [rank, columns] and "….b" [rows, rank].
std::vector<ParameterShape> adapters_of(const DecoderSettings& settings);
std::int64_t adapter_count(const DecoderSettings& settings);  // numbers in them

// Where an adapter of that name belongs.
struct AdapterPlace {
  std::int64_t layer;
  std::string target, matrix;  // "q_proj", "qkv"
  std::int64_t first_row, rows, columns;
  bool is_a;
};
AdapterPlace place_of_adapter(const std::string& name, const DecoderSettings& settings);

// Radians a position, for each pair of a head's elements.
std::vector<double> rotary_frequencies(const DecoderSettings& settings);

}  // namespace warpsmith::model

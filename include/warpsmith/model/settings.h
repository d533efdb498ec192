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
  std::int64_t head_dim() const { return head_size > 0 ? head_size : width / heads; }
  std::int64_t attention_width() const { return heads * head_dim(); }
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

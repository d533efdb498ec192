// What config.json of a Hugging Face folder says, and how its tensors are named: families qwen2, qwen3,
// llama, mistral, starcoder2, qwen3_moe, deepseek_v2 and deepseek_v3. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/model/safetensors.h"
#include "warpsmith/model/settings.h"

namespace warpsmith::model {

// What `config.json` says, in old and new spellings of transformers (`rope_scaling` or `rope_parameters`).
// `context`: at most so many tokens; 0: as many as the model allows. Throws Error (exit code 2) that names
// `name` and the key: a family that is not known, or something in it that this decoder does not do, is
// refused; nothing is passed over.
DecoderSettings settings_of_config(const Json& config, const std::string& name, std::int64_t context = 0);

// The way back: what transformers loads as `family`: one of those above, with weights in float32. Throws
// Error where that family cannot be these settings.
Json config_of_settings(const DecoderSettings& settings, const std::string& family);
// The first of them that can.
std::string family_of_settings(const DecoderSettings& settings);

// A tensor of the folder that is some rows of one of the decoder's parameters.
struct Source {
  std::string name;
  std::int64_t rows;
};
// Of the decoder's parameter `name`, in the order of its rows.
std::vector<Source> sources_of(const std::string& name, const DecoderSettings& settings);

// Throws Error (exit code 2) that names the file: a tensor that lacks, has another shape or dtype, or is not
// the family's.
void check_weights(const StoredTensors& stored, const DecoderSettings& settings,
                   const std::filesystem::path& folder);

}  // namespace warpsmith::model

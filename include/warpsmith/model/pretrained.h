// Models as Hugging Face folders: `config.json` and safetensors, of the families qwen2, qwen3, llama and
// mistral.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "warpsmith/base/json.h"
#include "warpsmith/model/decoder.h"

namespace warpsmith::model {

// What `config.json` says, in old and new spellings of transformers (`rope_scaling` or `rope_parameters`).
// `context`: at most so many tokens; 0: as many as the model allows. Throws Error (exit code 2) that names
// `name` and the key: a family that is not known, or something in it that this decoder does not do, is
// refused; nothing is passed over.
DecoderSettings settings_of_config(const Json& config, const std::string& name, std::int64_t context = 0);

// Its weights in float32 (from F32, BF16 or F16). Throws Error (exit code 2) that names the file: a tensor
// that lacks, has another shape or is not the family's.
Decoder load_pretrained(const std::filesystem::path& folder, std::int64_t context = 0);

// Writes config.json and model.safetensors (float32), which transformers loads as `family`: "qwen2", "qwen3",
// "llama" or "mistral". Throws Error where that family cannot be these settings.
void save_pretrained(const std::filesystem::path& folder, const Decoder& decoder, const std::string& family);

}  // namespace warpsmith::model

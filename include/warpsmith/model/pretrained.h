// Weights of Hugging Face folders, in and out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "warpsmith/model/checkpoint.h"
#include "warpsmith/model/config.h"
#include "warpsmith/model/decoder.h"

namespace warpsmith::model {

// The folder's model, its weights in float32 (from F32, BF16 or F16). Throws Error (exit code 2) that names
// the file.
Decoder load_pretrained(const std::filesystem::path& folder, std::int64_t context = 0);

// Writes config.json and model.safetensors (float32), which transformers loads as `family`. Throws Error
// where that family cannot be these settings.
void save_pretrained(const std::filesystem::path& folder, const Decoder& decoder, const std::string& family);

// The checkpoint as such a folder, written whole or not at all: weights of `type` (at::kFloat or
// at::kBFloat16), config.json and the rest as they were in the folder that it came from, its tokenizer.json.
// Of a model from nothing the config is that of the first family that can have its settings; its tokenizer
// stands there in our form, too (`tokenizer.warpsmith.json`), and has a chat template that gives its prompts.
// A model with LoRA is merged; its adapters are in the folder's `adapter/` as well, in the form of PEFT, in
// float32. Returns the bytes written.
std::uint64_t export_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                                at::ScalarType type);

}  // namespace warpsmith::model

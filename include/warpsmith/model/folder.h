// A Hugging Face folder as it is looked at before anything starts. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/model/manifest.h"
#include "warpsmith/model/settings.h"
#include "warpsmith/tokenizer/frame.h"

namespace warpsmith::model {

struct FolderFacts {
  std::string family;  // `model_type`
  DecoderSettings settings;
  tokenizer::Frame frame;
  std::int64_t parameters = 0;
  // Of config.json, tokenizer.json, the frame and, where they are wanted, the weights: of each tensor its
  // name, dtype, shape, and the first and the last 4 KiB, so that a plan does not read many gigabytes.
  std::string digest;
  std::vector<std::string> notes;
};

// Throws Error (exit code 2) that names the file and what is wrong with it: a file is missing or damaged, a
// family, tokenizer or tensor is not supported, the tokenizer has more tokens than the model. `weights`: they
// must be there as well. `context` as in settings_of_config().
FolderFacts look_at_folder(const std::filesystem::path& folder, bool weights, std::int64_t context,
                           const tokenizer::RenderChats& render);

// Of each tensor's name, dtype, shape, first and last 4 KiB. Throws Error (exit code 2).
std::string weights_digest(const std::filesystem::path& folder);

// config.json. Throws Error (exit code 2).
Json read_config(const std::filesystem::path& folder);

// Small files of the folder that others want beside weights and tokenizer.json: chat template, settings of
// generation and the like, by name; those that are there.
Companions companions_of(const std::filesystem::path& folder);

}  // namespace warpsmith::model

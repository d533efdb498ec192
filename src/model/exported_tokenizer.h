// A tokenizer of ours as Hugging Face's `tokenizers` and transformers read it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/model/tokenizer.h"

namespace warpsmith::model {

// tokenizer.json. `bytes`: of each token; special ones have none. Gives texts the same ids, but for names of
// special tokens in a text, which it takes for those. Empty where two tokens have the same bytes, for which
// that form has no room.
std::string hugging_face_tokenizer(const std::vector<std::pair<Token, Token>>& merges,
                                   const std::vector<std::string>& bytes);
// tokenizer_config.json, whose chat template makes a prompt of a chat's messages, and generation_config.json.
Json hugging_face_tokenizer_config(std::int64_t context);
Json hugging_face_generation_config();

}  // namespace warpsmith::model

// The tokenizer of a Hugging Face folder: `tokenizer.json` of byte-level BPE, as GPT-2, Llama 3, Qwen,
// DeepSeek and StarCoder have it. Gives the ids that Hugging Face `tokenizers` gives.
//
// Supported: model BPE (with `ignore_merges`); normalizers NFC and Sequence; pre-tokenizers ByteLevel, Split
// (`Isolated`), Digits and Sequence; post-processors ByteLevel, TemplateProcessing and Sequence; added tokens
// with all their flags. Everything else in the file is refused, with its place: ids that are nearly right
// train a model that is nearly right.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/tokenizer/byte_pairs.h"

namespace warpsmith::tokenizer {

class Pretrained {
 public:
  // Reads `file`. Throws Error (exit code 2) that names the file, the place in it and what is wrong there.
  static Pretrained load(const std::filesystem::path& file);
  // The same from its text; `name` stands in messages.
  static Pretrained from_json(std::string_view text, const std::string& name);

  Pretrained(Pretrained&&) noexcept;
  Pretrained& operator=(Pretrained&&) noexcept;
  ~Pretrained();

  // One more than the largest id.
  std::int32_t size() const;

  // Tokens of `text`, added tokens in it included. Without those that the post-processor puts around it
  // (before(), behind()). Throws Error where the text is no UTF-8.
  std::vector<Token> encode(std::string_view text) const;
  const std::vector<Token>& before() const;  // such as <|begin_of_text|>
  const std::vector<Token>& behind() const;

  // The bytes of these tokens, which need not be whole UTF-8. `special`: those of special tokens as well.
  // Ids that are no token give nothing.
  std::string decode(std::span<const Token> tokens, bool special = true) const;

  // Of a token that is written like this, added or not.
  std::optional<Token> find(std::string_view content) const;

 private:
  struct State;
  explicit Pretrained(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::tokenizer

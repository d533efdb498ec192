// What a kind of tokenizer does; see model/tokenizer.h.
#pragma once

#include "warpsmith/model/tokenizer.h"

namespace warpsmith::model {

class Tokenizer::Coding {
 public:
  virtual ~Coding() = default;
  virtual std::string to_json() const = 0;
  virtual std::string to_hugging_face() const = 0;
  virtual const tokenizer::Frame* frame() const { return nullptr; }
  virtual int size() const = 0;
  virtual std::vector<Token> encode(std::string_view text) const = 0;
  virtual std::string decode(std::span<const Token> tokens) const = 0;
  virtual std::vector<Token> encode_prompt(std::string_view prompt) const = 0;
  virtual Token end() const = 0;
  virtual const std::vector<Token>& stops() const = 0;
};

}  // namespace warpsmith::model

// Byte-level BPE (Sennrich et al. 2016, on bytes as in GPT-2). Any byte string comes back exactly from its
// tokens.
//
// Ids: 0…4 are the special tokens below, 5…260 the 256 bytes, then one for each merge in the order in which
// they were learnt. Text is first cut into pieces that no merge crosses, see split_pieces(). No text encodes
// to a special token.
//
// A training sequence is  <bos> <prompt> PROMPT <answer> COMPLETION <eos>.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpsmith/tokenizer/byte_pairs.h"

namespace warpsmith::model {

using Token = tokenizer::Token;

inline constexpr Token kPad = 0, kBos = 1, kEos = 2, kPrompt = 3, kAnswer = 4;
inline constexpr Token kFirstByte = 5, kFirstMerge = kFirstByte + 256;

class Tokenizer {
 public:
  // Learns merges on `texts` until there are `vocabulary` tokens in all (at least kFirstMerge) or no pair is
  // left that occurs twice. Depends on the texts' contents and not on their order. Equal counts: the smaller
  // pair of ids wins.
  static Tokenizer train(std::span<const std::string> texts, int vocabulary);

  // As to_json() gave it; throws Error where it is damaged.
  static Tokenizer from_json(std::string_view text);
  std::string to_json() const;

  int size() const { return kFirstMerge + static_cast<int>(merges_.size()); }
  std::vector<Token> encode(std::string_view text) const;
  std::string decode(std::span<const Token> tokens) const;  // special and unknown tokens give nothing

  // <bos> <prompt> prompt <answer>: what a completion is sampled after.
  std::vector<Token> encode_prompt(std::string_view prompt) const;
  // completion <eos>
  std::vector<Token> encode_completion(std::string_view completion) const;

 private:
  explicit Tokenizer(std::vector<std::pair<Token, Token>> merges);

  std::vector<std::pair<Token, Token>> merges_;
  tokenizer::BytePairs pairs_;
  std::vector<std::string> bytes_;  // of each token
};

// Cuts text into pieces; their concatenation is the text. A piece is a newline run with the indent behind it,
// a run of digits, or a phrase: what stands between those, ended behind each of , ; ( ) [ {. None is over 64
// bytes. Phrases span words, unlike GPT-2's pieces: programs of one style repeat whole ones ("extern "C"
// __global__ void k(", " const float* x,"), and where each is one token a small model has a third of the
// tokens to get right. Numbers never join a phrase, so that a block size stays a choice of its own.
std::vector<std::string_view> split_pieces(std::string_view text);

}  // namespace warpsmith::model

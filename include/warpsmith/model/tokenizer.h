// Texts as tokens, and the form of what a model is asked and answers.
//
// A trained one is byte-level BPE (Sennrich et al. 2016, on bytes as in GPT-2): any byte string comes back
// exactly from its tokens. Ids: 0…4 are the special tokens below, 5…260 the 256 bytes, then one for each
// merge in the order in which they were learnt. Text is first cut into pieces that no merge crosses, see
// split_pieces(). No text encodes to a special token. A training sequence is
// <bos> <prompt> PROMPT <answer> COMPLETION <eos>.
//
// A pretrained one is that of a Hugging Face folder, with the frame that its chat template gives.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpsmith/tokenizer/byte_pairs.h"
#include "warpsmith/tokenizer/frame.h"

namespace warpsmith::model {

using Token = tokenizer::Token;

inline constexpr Token kPad = 0, kBos = 1, kEos = 2, kPrompt = 3, kAnswer = 4;
inline constexpr Token kFirstByte = 5, kFirstMerge = kFirstByte + 256;

// A prompt, or one of its shorter forms.
struct FittedPrompt {
  std::size_t left_out = 0;  // 0: the prompt; else number of the shorter form, from 1
  std::vector<Token> tokens;
};

class Tokenizer {
 public:
  // Learns merges on `texts` until there are `vocabulary` tokens in all (at least kFirstMerge) or no pair is
  // left that occurs twice. Depends on the texts' contents and not on their order. Equal counts: the smaller
  // pair of ids wins.
  static Tokenizer train(std::span<const std::string> texts, int vocabulary);
  // A trained one, as to_json() gave it; throws Error where it is damaged.
  static Tokenizer from_json(std::string_view text);
  // `json`: tokenizer.json of a Hugging Face folder; `name` stands in messages. Throws Error (exit code 2).
  static Tokenizer pretrained(std::string json, const std::string& name, tokenizer::Frame frame);

  // The text of tokenizer.json: of our form, or the folder's.
  std::string to_json() const;
  // tokenizer.json for Hugging Face's `tokenizers`, which gives texts the same ids, but for names of special
  // tokens in a text ("<eos>"). Empty where that form cannot say it: two tokens of the same bytes.
  std::string to_hugging_face() const;
  const tokenizer::Frame* frame() const;  // of a pretrained one; else null

  int size() const;
  std::vector<Token> encode(std::string_view text) const;
  std::string decode(std::span<const Token> tokens) const;  // special and unknown tokens give nothing

  // What a completion is sampled after.
  std::vector<Token> encode_prompt(std::string_view prompt) const;
  // The first of these, `prompt` and then `shorter`, with at most `room` tokens; the last where none has.
  FittedPrompt encode_fitting(std::string_view prompt, std::span<const std::string> shorter,
                              std::int64_t room) const;
  // The completion, and the token that ends it.
  std::vector<Token> encode_completion(std::string_view completion) const;
  // Each of these ends a completion that is sampled.
  const std::vector<Token>& stops() const;

  class Coding;  // how each kind does it

 private:
  explicit Tokenizer(std::shared_ptr<const Coding> coding) : coding_(std::move(coding)) {}
  std::shared_ptr<const Coding> coding_;
};

// Cuts text into pieces; their concatenation is the text. A piece is a newline run with the indent behind it,
// a run of digits, or a phrase: what stands between those, ended behind each of , ; ( ) [ {. None is over 64
// bytes. Phrases span words, unlike GPT-2's pieces: programs of one style repeat whole ones ("extern "C"
// __global__ void k(", " const float* x,"), and where each is one token a small model has a third of the
// tokens to get right. Numbers never join a phrase, so that a block size stays a choice of its own.
std::vector<std::string_view> split_pieces(std::string_view text);
inline constexpr std::size_t kLongestPiece = 64;

}  // namespace warpsmith::model

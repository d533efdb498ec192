// Byte-pair encoding of one piece of text (Sennrich et al. 2016, on bytes as in GPT-2).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace warpsmith::tokenizer {

using Token = std::int32_t;

constexpr Token kNoToken = -1;

struct Merge {
  Token left = 0, right = 0, into = 0;
};

// The character that stands for each byte in a vocabulary, as UTF-8: GPT-2's. Printable ones stand for
// themselves.
std::array<std::string, 256> characters_of_bytes();

class BytePairs {
 public:
  BytePairs() = default;  // knows no tokens
  // `bytes`: the token of each byte; kNoToken: it is left out of texts. Earlier merges come first. Of two
  // merges of one pair the first counts.
  BytePairs(const std::array<Token, 256>& bytes, std::span<const Merge> merges);

  // Appends the piece's tokens: of all pairs side by side the earliest merge is made, the leftmost one of
  // several, until there is none. Takes O(n log n) steps for n bytes.
  void encode(std::string_view piece, std::vector<Token>& out) const;

 private:
  struct Into {
    std::int32_t rank;
    Token token;
  };
  const Into* find(Token left, Token right) const;
  void encode_long(std::string_view piece, std::vector<Token>& out) const;

  std::array<Token, 256> bytes_{};
  std::unordered_map<std::uint64_t, Into> merges_;
};

// Appends the tokens of each piece, as `encode(piece, out)` does it. What came before is copied.
template <typename Encode>
void encode_pieces(std::span<const std::string_view> pieces, const Encode& encode, std::vector<Token>& out) {
  std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> known;  // where they lie in `out`
  for (const std::string_view piece : pieces) {
    const auto [entry, is_new] = known.try_emplace(piece, out.size(), 0);
    auto& [begin, count] = entry->second;
    if (is_new) {
      encode(piece, out);
      count = out.size() - begin;
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Token token = out[begin + i];
      out.push_back(token);
    }
  }
}

}  // namespace warpsmith::tokenizer

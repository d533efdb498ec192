#include "warpsmith/tokenizer/byte_pairs.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace warpsmith::tokenizer {
namespace {

std::array<Token, 256> plain_bytes() {
  std::array<Token, 256> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<Token>(i);
  return bytes;
}

std::vector<Token> encode(const BytePairs& pairs, std::string_view piece) {
  std::vector<Token> out;
  pairs.encode(piece, out);
  return out;
}

TEST(BytePairs, TheEarliestMergeComesFirstAndTheLeftmostOfSeveral) {
  const std::vector<Merge> merges = {{'b', 'c', 256}, {'a', 'b', 257}, {256, 'd', 258}, {'a', 'a', 259}};
  const BytePairs pairs(plain_bytes(), merges);
  EXPECT_EQ(encode(pairs, "abc"), (std::vector<Token>{'a', 256}));
  EXPECT_EQ(encode(pairs, "abcd"), (std::vector<Token>{'a', 258}));
  EXPECT_EQ(encode(pairs, "aaa"), (std::vector<Token>{259, 'a'}));
  EXPECT_EQ(encode(pairs, "ab"), std::vector<Token>{257});
  EXPECT_EQ(encode(pairs, ""), std::vector<Token>{});
  EXPECT_EQ(encode(pairs, "\xff"), std::vector<Token>{255});
}

// Piece by piece, by looking through all pairs each time.
std::vector<Token> slowly(const std::vector<Merge>& merges, std::string_view piece) {
  std::vector<Token> tokens;
  for (const char c : piece) tokens.push_back(static_cast<unsigned char>(c));
  for (;;) {
    std::size_t best = merges.size(), at = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      for (std::size_t m = 0; m < best; ++m)
        if (merges[m].left == tokens[i] && merges[m].right == tokens[i + 1]) {
          best = m;
          at = i;
        }
    if (best == merges.size()) return tokens;
    tokens[at] = merges[best].into;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

// Short and long pieces take different ways.
TEST(BytePairs, LongPiecesAreEncodedAsShortOnes) {
  std::mt19937 random(1);
  std::vector<Merge> merges;
  Token next = 256;
  for (int i = 0; i < 40; ++i) {
    const auto some = [&] {
      const auto pick = static_cast<Token>(random() % static_cast<unsigned>(3 + i));
      return pick < 3 ? 'a' + pick : 256 + pick - 3;
    };
    merges.push_back({some(), some(), next++});
  }
  const BytePairs pairs(plain_bytes(), merges);
  for (std::size_t length = 1; length < 200; length += 7)
    for (int times = 0; times < 5; ++times) {
      std::string piece;
      for (std::size_t i = 0; i < length; ++i) piece += static_cast<char>('a' + random() % 3);
      EXPECT_EQ(encode(pairs, piece), slowly(merges, piece)) << piece;
    }
}

TEST(EncodePieces, WhatComesAgainIsCopied) {
  const BytePairs pairs(plain_bytes(), {});
  int encoded = 0;
  std::vector<Token> out;
  const std::vector<std::string_view> pieces = {"ab", "c", "ab", "ab"};
  const auto encode_one = [&](std::string_view piece, std::vector<Token>& to) {
    ++encoded;
    pairs.encode(piece, to);
  };
  encode_pieces(pieces, encode_one, out);
  EXPECT_EQ(out, (std::vector<Token>{'a', 'b', 'c', 'a', 'b', 'a', 'b'}));
  EXPECT_EQ(encoded, 2);
}

}  // namespace
}  // namespace warpsmith::tokenizer

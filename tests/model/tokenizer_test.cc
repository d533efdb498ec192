#include "warpsmith/model/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"

namespace warpsmith::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kSource = R"(// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) out[i] = fmaxf(x[i], 0.f);
}
)";

std::string joined(const std::vector<std::string_view>& pieces) {
  std::string out;
  for (const std::string_view piece : pieces) (out += piece) += "|";
  return out;
}

TEST(SplitPieces, PhrasesNumbersAndIndent) {
  EXPECT_EQ(joined(split_pieces("int i = t1[256];\n  if (x)")), "int i = t|1|[|256|];|\n  |if (|x)|");
  EXPECT_EQ(joined(split_pieces("void k(const float* x, int N) {")), "void k(|const float* x,| int N)| {|");
  EXPECT_EQ(joined(split_pieces("a\r\n\tb\x01")), "a|\r\n\t|b\x01|");
  EXPECT_EQ(joined(split_pieces("k<<<cdiv(N, 256), 64>>>(x)")), "k<<<cdiv(|N,| |256|)|,| |64|>>>(|x)|");
  EXPECT_EQ(joined(split_pieces("größe  ")), "größe  |");
  EXPECT_TRUE(split_pieces("").empty());
}

TEST(SplitPieces, NoPieceIsLongAndNothingIsLost) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    const std::string_view alphabet = "ab 1\n\t({\x80\xff";
    const std::size_t length = random.below(300);
    while (text.size() < length) text.append(1 + random.below(80), alphabet[random.below(alphabet.size())]);
    std::string again;
    for (const std::string_view piece : split_pieces(text)) {
      EXPECT_LE(piece.size(), 64u);
      EXPECT_FALSE(piece.empty());
      again += piece;
    }
    EXPECT_EQ(again, text);
  }
}

TEST(Tokenizer, RandomBytesComeBack) {
  const Tokenizer tokenizer = Tokenizer::train(std::vector<std::string>(20, kSource), 400);
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text(random.below(400), '\0');
    for (char& c : text) c = static_cast<char>(random.below(256));
    if (round % 3 == 0) text += kSource.substr(random.below(kSource.size()));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("\xc3\x28 \xf0\x9f\x92 \xed\xa0\x80")),
            "\xc3\x28 \xf0\x9f\x92 \xed\xa0\x80");
  EXPECT_TRUE(tokenizer.encode("").empty());
}

TEST(Tokenizer, TheFirstPromptThatFitsIsTaken) {
  const Tokenizer tokenizer = Tokenizer::train(std::vector<std::string>(20, kSource), kFirstMerge);
  const std::vector<std::string> prompts = {"twenty_bytes_of_text", "ten_bytes_", "five_"};
  const auto frame = static_cast<std::int64_t>(tokenizer.encode_prompt("").size());
  for (const auto& [room, number] : {std::pair(20, 0), {19, 1}, {10, 1}, {9, 2}, {5, 2}, {0, 2}}) {
    const FittedPrompt fitted =
        tokenizer.encode_fitting(prompts[0], std::span(prompts).subspan(1), frame + room);
    EXPECT_EQ(fitted.left_out, static_cast<std::size_t>(number)) << room;
    EXPECT_EQ(fitted.tokens, tokenizer.encode_prompt(prompts[fitted.left_out]));
  }
}

TEST(Tokenizer, LearnsTheFrequentPairsFirst) {
  // "ab" four times, three of them in "abc", "dd" twice; then nothing occurs twice.
  const Tokenizer tokenizer = Tokenizer::train(std::vector<std::string>{"abc1abc1abc1ab1dd2dd"}, 600);
  EXPECT_THAT(tokenizer.encode("ab"), ElementsAre(kFirstMerge));
  EXPECT_THAT(tokenizer.encode("abc"), ElementsAre(kFirstMerge + 1));
  EXPECT_THAT(tokenizer.encode("dd"), ElementsAre(kFirstMerge + 2));
  EXPECT_EQ(tokenizer.size(), kFirstMerge + 3);
}

TEST(Tokenizer, DoesNotDependOnTheOrderOfTexts) {
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.push_back(kSource.substr(static_cast<std::size_t>(i) * 5, 80));
  const std::string one = Tokenizer::train(texts, 380).to_json();
  std::reverse(texts.begin(), texts.end());
  EXPECT_EQ(Tokenizer::train(texts, 380).to_json(), one);
}

TEST(Tokenizer, CompressesWhatItWasTrainedOn) {
  const Tokenizer tokenizer = Tokenizer::train(std::vector<std::string>(10, kSource), 512);
  EXPECT_LT(tokenizer.encode(kSource).size() * 2, kSource.size());
}

TEST(Tokenizer, SequenceHasItsSpecialTokens) {
  const Tokenizer tokenizer = Tokenizer::train({}, kFirstMerge);
  EXPECT_THAT(tokenizer.encode_prompt("A"), ElementsAre(kBos, kPrompt, kFirstByte + 'A', kAnswer));
  EXPECT_THAT(tokenizer.encode_completion("B"), ElementsAre(kFirstByte + 'B', kEos));
  EXPECT_EQ(tokenizer.decode(std::vector<Token>{kBos, kFirstByte + 'x', kEos, kPad, 9999, -1}), "x");
}

TEST(Tokenizer, JsonComesBackAndDamageIsFound) {
  const Tokenizer tokenizer = Tokenizer::train(std::vector<std::string>(4, kSource), 340);
  const std::string json = tokenizer.to_json();
  EXPECT_EQ(Tokenizer::from_json(json).to_json(), json);
  EXPECT_EQ(Tokenizer::from_json(json).encode(kSource), tokenizer.encode(kSource));
  const auto message = [](const std::string& text) {
    try {
      Tokenizer::from_json(text);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("{"), HasSubstr("tokenizer"));
  EXPECT_THAT(message(R"({"merges": [], "schema": "other/1"})"), HasSubstr("schema other/1"));
  EXPECT_THAT(message(R"({"merges": [[5, 300]], "schema": "warpsmith.tokenizer/1"})"),
              HasSubstr("unknown tokens"));
  EXPECT_THAT(message(R"({"merges": [[5, 6], [5, 6]], "schema": "warpsmith.tokenizer/1"})"),
              HasSubstr("twice"));
  EXPECT_THROW(Tokenizer::train({}, 100), Error);
}

}  // namespace
}  // namespace warpsmith::model

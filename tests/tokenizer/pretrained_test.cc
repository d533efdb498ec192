#include "warpsmith/tokenizer/pretrained.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byte_characters.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"

namespace warpsmith::tokenizer {
namespace {

using ::testing::HasSubstr;

// The characters of all bytes, then "th" and "the".
Json vocabulary() {
  Json vocab;
  Token next = 0;
  for (const std::string& character : byte_characters()) vocab[character] = next++;
  vocab["th"] = next++;
  vocab["the"] = next++;
  return vocab;
}

Json plain() {
  return {{"normalizer", nullptr},
          {"added_tokens", Json::array()},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"post_processor", nullptr},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary()}, {"merges", {"t h", "th e"}}}}};
}

Json added(const std::string& content, Token id, bool special = true) {
  return {{"content", content}, {"id", id}, {"special", special}, {"normalized", false}};
}

Pretrained made(const Json& json) { return Pretrained::from_json(json.dump(), "t.json"); }

std::string error_of(const Json& json) {
  try {
    (void)made(json);
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), kExitUsage);
    return e.what();
  }
  return "none";
}

TEST(Pretrained, MergesMakeTokensAndBytesComeBack) {
  const Pretrained t = made(plain());
  EXPECT_EQ(t.size(), 258);
  EXPECT_EQ(t.encode("the"), std::vector<Token>{257});
  EXPECT_EQ(t.encode("th"), std::vector<Token>{256});
  EXPECT_EQ(t.find("the"), 257);
  EXPECT_EQ(t.find("nothing"), std::nullopt);
  const std::string text = "the\n caf\u00e9 \U0001f600 \x01";
  EXPECT_EQ(t.decode(t.encode(text)), text);
  EXPECT_EQ(t.decode(std::vector<Token>{-1, 257, 9999}), "the");
}

TEST(Pretrained, MergesMayBeListsOfTwo) {
  Json json = plain();
  json["model"]["merges"] = Json::array({Json::array({"t", "h"}), Json::array({"th", "e"})});
  EXPECT_EQ(made(json).encode("the"), std::vector<Token>{257});
}

TEST(Pretrained, AWholePieceMayBeATokenWithoutMerges) {
  Json json = plain();
  json["model"]["vocab"]["zq"] = 258;
  EXPECT_EQ(made(json).encode("zq").size(), 2u);
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ(made(json).encode("zq"), std::vector<Token>{258});
  EXPECT_EQ(made(json).encode("zqz").size(), 3u) << "only where it is a whole piece";
}

TEST(Pretrained, AddedTokensAreFoundTheLongestOfThemAndSpecialOnesNeedNotBeShown) {
  Json json = plain();
  json["added_tokens"] = {added("<a>", 300), added("<a>b", 301, false)};
  const Pretrained t = made(json);
  EXPECT_EQ(t.size(), 302);
  EXPECT_EQ(t.encode("<a>the<a>b"), (std::vector<Token>{300, 257, 301}));
  EXPECT_EQ(t.decode(std::vector<Token>{300, 257, 301}), "<a>the<a>b");
  EXPECT_EQ(t.decode(std::vector<Token>{300, 257, 301}, false), "the<a>b");
}

TEST(Pretrained, AddedTokensMayTakeBlanksAndStandAlone) {
  Json json = plain();
  Json left = added("<l>", 300), right = added("<r>", 301), word = added("the", 302);
  left["lstrip"] = right["rstrip"] = word["single_word"] = true;
  json["added_tokens"] = {left, right, word};
  const Pretrained t = made(json);
  EXPECT_EQ(t.encode("t \n<l>"), (std::vector<Token>{static_cast<Token>(*t.find("t")), 300}));
  EXPECT_EQ(t.encode("<r>\u00a0 t"), (std::vector<Token>{301, static_cast<Token>(*t.find("t"))}));
  EXPECT_EQ(t.encode("the"), std::vector<Token>{302});
  EXPECT_EQ(t.encode("thet").front(), 257) << "a word goes on behind it";
}

TEST(Pretrained, TheTemplateSaysWhatStandsAround) {
  Json json = plain();
  json["added_tokens"] = {added("<s>", 300), added("</s>", 301)};
  json["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}},
        {{"type", "TemplateProcessing"},
         {"single",
          {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
           {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
           {{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}}}},
         {"special_tokens", {{"<s>", {{"ids", {300}}}}, {"</s>", {{"ids", {301}}}}}}}}}};
  const Pretrained t = made(json);
  EXPECT_EQ(t.before(), std::vector<Token>{300});
  EXPECT_EQ(t.behind(), std::vector<Token>{301});
  EXPECT_EQ(t.encode("the"), std::vector<Token>{257}) << "the caller puts them there";
}

TEST(Pretrained, BytesWithoutATokenAreLeftOutOrUnknown) {
  Json json = plain();
  std::string seven;  // how byte 0x07 is written
  for (const auto& [word, id] : json["model"]["vocab"].items())
    if (id == 7) seven = word;
  json["model"]["vocab"].erase(seven);
  EXPECT_EQ(made(json).encode("the\x07"), std::vector<Token>{257});
  json["model"]["unk_token"] = "the";
  EXPECT_EQ(made(json).encode("\x07!"), (std::vector<Token>{257, '!'}));
}

// What is not supported, or wrong, is told with its place.
TEST(Pretrained, EverythingElseIsRefused) {
  const auto refused = [](const char* pointer, const Json& value) {
    Json json = plain();
    json[Json::json_pointer(pointer)] = value;
    return error_of(json);
  };
  EXPECT_THAT(refused("/model/type", "Unigram"), HasSubstr("t.json: model.type: `Unigram` is not supported"));
  EXPECT_THAT(refused("/model/byte_fallback", true), HasSubstr("model.byte_fallback: it is not supported"));
  EXPECT_THAT(refused("/model/unk_token", "<unk>"), HasSubstr("model.unk_token: it is not in model.vocab"));
  EXPECT_THAT(refused("/model/dropout", 0.1), HasSubstr("model.dropout: it is not supported"));
  EXPECT_THAT(refused("/model/merges/1", "th"), HasSubstr("model.merges[1]: two tokens"));
  EXPECT_THAT(refused("/model/merges/1", "th q"), HasSubstr("the vocabulary has no token `thq`"));
  EXPECT_THAT(refused("/model/vocab/the", -1), HasSubstr(R"(model.vocab["the"]: an id of 0 to)"));
  EXPECT_THAT(refused("/model/vocab/the", "x"), HasSubstr(R"(model.vocab["the"]: an id of 0 to)"));
  EXPECT_THAT(refused("/model/vocab", Json::object()), HasSubstr("model.vocab: it has no token of ` `"));
  EXPECT_THAT(refused("/normalizer", {{"type", "Lowercase"}}), HasSubstr("normalizer: `Lowercase` is not"));
  EXPECT_THAT(refused("/pre_tokenizer", nullptr), HasSubstr("pre_tokenizer: there is none"));
  EXPECT_THAT(refused("/pre_tokenizer", {{"type", "Metaspace"}}), HasSubstr("`Metaspace` is not supported"));
  EXPECT_THAT(refused("/pre_tokenizer", {{"type", "Digits"}}), HasSubstr("`ByteLevel` is not among them"));
  EXPECT_THAT(refused("/pre_tokenizer/add_prefix_space", true), HasSubstr("add_prefix_space: it is not"));
  EXPECT_THAT(refused("/post_processor", {{"type", "BertProcessing"}}), HasSubstr("`BertProcessing`"));
  EXPECT_THAT(refused("/added_tokens", {{{"content", "x"}}}), HasSubstr("added_tokens[0].id: an id of"));
  const Json split = {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}};
  EXPECT_THAT(refused("/pre_tokenizer", split), HasSubstr("pre_tokenizer.pattern.Regex: the pattern cannot"));
  Json removed = split;
  removed["behavior"] = "Removed";
  EXPECT_THAT(refused("/pre_tokenizer", removed), HasSubstr("behavior: `Removed` is not supported"));
  EXPECT_THROW((void)Pretrained::from_json("{", "t.json"), Error);
  EXPECT_THROW((void)Pretrained::from_json("[]", "t.json"), Error);
}

TEST(Pretrained, AFileThatCannotBeReadIsTheUsersMistake) {
  for (const char* path : {"/nowhere/tokenizer.json", "/", "/dev/null"}) try {
      (void)Pretrained::load(path);
      ADD_FAILURE() << path;
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), kExitUsage) << e.what();
      EXPECT_THAT(e.what(), HasSubstr(path));
    }
}

TEST(Pretrained, TextThatIsNoUtf8IsRefused) { EXPECT_THROW((void)made(plain()).encode("ab\xff"), Error); }

// PCRE2's own \s has U+180E.
TEST(Pretrained, WhiteSpaceIsUnicodes) {
  Json json = plain();
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", R"([^\s]+|\s+)"}}}, {"behavior", "Isolated"}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  json["model"]["ignore_merges"] = true;
  json["model"]["vocab"]["a\u00e1\u0142\u0130b"] = 400;  // the bytes of "a", U+180E, "b" as they are written
  EXPECT_EQ(made(json).encode("a\u180eb"), std::vector<Token>{400});
}

}  // namespace
}  // namespace warpsmith::tokenizer

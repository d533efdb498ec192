#include "warpsmith/base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpsmith {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

TEST(ParseDuration, GoodRows) {
  const std::pair<const char*, long long> rows[] = {
      {"90s", 90'000},      {"15m", 900'000},    {"15min", 900'000},
      {"2h", 7'200'000},    {"1d", 86'400'000},  {"500ms", 500},
      {"1h30m", 5'400'000}, {"1.5h", 5'400'000}, {"1:30:00", 5'400'000},
      {"2:05", 125'000},    {"0s", 0},           {"1d2h3m4s5ms", 93'784'005}};
  const std::pair<const char*, long long> of_slurm[] = {
      {"1-00:00:00", 86'400'000},  {"1-12", 129'600'000}, {"2-01:30", 178'200'000},  {"0-0", 0},
      {"7-23:59:59", 691'199'000}, {"100:00", 6'000'000}, {"48:00:00", 172'800'000}, {"0-00:00:01", 1'000}};
  for (const auto& [text, ms] : of_slurm) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->count(), ms) << text;
  }
  for (const auto& [text, ms] : rows) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->count(), ms) << text;
  }
}

TEST(ParseDuration, BadRows) {
  for (const char* text :
       {"",        "s",      "90",    "-5s",     "5 s",        "5x",        "1h30",
        "1:2:3:4", "1:",     ":5",    "1e3s",    "nan",        "infs",      "99999999999d",
        "1-",      "-1",     "1-24",  "1-00:60", "1-00:00:60", "1-1:2:3:4", "1--1",
        "1-2-3",   "1.5:00", "1-12h", "1d-12",   "1: 30",      "+1:00",     "99999999999-00"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(FormatDuration, Rows) {
  const std::pair<long long, const char*> rows[] = {{0, "0ms"},      {850, "850ms"},     {1500, "1.5s"},
                                                    {42'000, "42s"}, {185'000, "3m05s"}, {7'800'000, "2h10m"},
                                                    {59'999, "59s"}};
  for (const auto& [ms, text] : rows) EXPECT_EQ(format_duration(milliseconds(ms)), text);
}

TEST(ParseSize, GoodRows) {
  const std::pair<const char*, std::uint64_t> rows[] = {
      {"512", 512},         {"512B", 512},          {"64KiB", 65'536},  {"64k", 65'536},
      {"2MiB", 2u << 20},   {"4GiB", 4ull << 30},   {"4G", 4ull << 30}, {"4GB", 4ull << 30},
      {"1TiB", 1ull << 40}, {"1.5 GiB", 3ull << 29}};
  for (const auto& [text, bytes] : rows) {
    const auto parsed = parse_size(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ParseSize, BadRows) {
  for (const char* text : {"", "GiB", "-1", "4Q", "4 GiBs", "iB", "1e9", "9999999999TiB"})
    EXPECT_FALSE(parse_size(text)) << text;
}

TEST(FormatSize, Rows) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(3ull << 29), "1.5 GiB");
  EXPECT_EQ(format_size(5000ull << 40), "5000.0 TiB");
}

TEST(NearestWord, Rows) {
  const std::vector<std::string> known = {"temperature", "top_k", "top_p", "max_tokens", "seed"};
  const std::pair<const char*, const char*> rows[] = {{"temprature", "temperature"},
                                                      {"tempreature", "temperature"},
                                                      {"topk", "top_k"},
                                                      {"max-tokens", "max_tokens"},
                                                      {"sed", "seed"},
                                                      {"esed", "seed"},  // swapped letters are one mistake
                                                      {"tpo_k", "top_k"}};
  for (const auto& [word, meant] : rows) EXPECT_EQ(nearest_word(word, known), meant) << word;
  for (const char* word : {"learning_rate", "xyzzy", ""})
    EXPECT_EQ(nearest_word(word, known), std::nullopt) << word;
  EXPECT_EQ(nearest_word("x", {}), std::nullopt);
}

TEST(Pieces, TrimSplitLines) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split_lines("a\n\nb\n"), ElementsAre("a", "", "b"));
  EXPECT_THAT(split_lines("a\nb"), ElementsAre("a", "b"));
  EXPECT_TRUE(split_lines("").empty());
}

TEST(Printable, ControlCharactersAreBlanksAndTheRestIsAscii) {
  EXPECT_EQ(printable("out[3]: 1.5 ~ 2"), "out[3]: 1.5 ~ 2");
  EXPECT_EQ(printable("\033[31m\a\b\tno\r\n\177"), " [31m   no   ");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a b");
  EXPECT_EQ(printable("\xc3\xa4\xe2\x80\xae.\x9b"
                      "31m"),
            "??.?31m");  // two characters, and a byte that is none
  EXPECT_EQ(printable(""), "");
}

TEST(Replaced, Rows) {
  EXPECT_EQ(replaced("{a} and {a}", "{a}", "b"), "b and b");
  EXPECT_EQ(replaced("aaa", "a", "aa"), "aaaaaa") << "what was put in is not searched again";
  EXPECT_EQ(replaced("aaaa", "aa", ""), "");
  EXPECT_EQ(replaced("", "a", "b"), "");
  EXPECT_EQ(replaced("abc", "d", "e"), "abc");
}

TEST(IsIdentifier, Rows) {
  for (const char* good : {"a", "_", "a-b_9", "Stage1"}) EXPECT_TRUE(is_identifier(good)) << good;
  for (const char* bad : {"", "9a", "-a", "a b", "a.b", "ä"}) EXPECT_FALSE(is_identifier(bad)) << bad;
}

}  // namespace
}  // namespace warpsmith

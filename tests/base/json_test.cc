#include "warpsmith/base/json.h"
#include "warpsmith/base/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <vector>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Json, DumpOfEqualValuesIsEqual) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": [true, null]})", "x").dump(), R"({"a":[true,null],"b":1})");
}

TEST(Json, ErrorsNameTheDocumentTheByteAndTheKey) {
  const auto problem = [](auto act) {
    try {
      act();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(problem([] { parse_json("{\"a\": }", "job.json"); }), "job.json: bad JSON at byte 7");
  EXPECT_THAT(problem([] {
                json_at<int>(Json{{"a", "text"}}, "a", "job.json");
              }),
              HasSubstr("job.json: key `a`: "));
  EXPECT_THAT(problem([] { json_at<int>(Json::object(), "missing", "job.json"); }),
              HasSubstr("job.json: key `missing`: "));
  EXPECT_THAT(problem([] { read_json_file("/nowhere/f.json"); }), HasSubstr("/nowhere/f.json"));
}

template <typename T>
bool fits(const char* text) {
  try {
    (void)parse_json(text, "x").get<T>();
    return true;
  } catch (const Json::exception& e) {
    EXPECT_EQ(in_words(e), "a number does not fit where it stands") << text;
    return false;
  }
}

TEST(Json, WholeNumbersAreReadOnlyWhereTheyFit) {
  EXPECT_TRUE(fits<int>("2147483647") && fits<int>("-2147483648") && fits<int>("3.0") && fits<int>("-0.5"));
  EXPECT_FALSE(fits<int>("2147483648") || fits<int>("-2147483649") || fits<int>("7.8e30") ||
               fits<int>("-1e10"));
  EXPECT_TRUE(fits<std::uint64_t>("18446744073709551615") && fits<std::uint64_t>("1e19"));
  EXPECT_FALSE(fits<std::uint64_t>("-1") || fits<std::uint64_t>("1.8446744073709552e19"));
  EXPECT_TRUE(fits<std::int64_t>("-9223372036854775808") && fits<std::int64_t>("-9223372036854775808.0"));
  EXPECT_FALSE(fits<std::int64_t>("9223372036854775808") || fits<std::int64_t>("9.3e18"));
  EXPECT_FALSE(fits<std::uint32_t>("4294967296") || fits<std::uint32_t>("1e300"));
  EXPECT_EQ(parse_json("[1, 2.0]", "x").get<std::vector<int>>(), (std::vector<int>{1, 2}));
  EXPECT_THROW((void)parse_json("[1, 1e30]", "x").get<std::vector<int>>(), Json::exception);
  EXPECT_THROW((void)parse_json("{\"a\": 1e30}", "x").value("a", 0), Json::exception);
  try {
    json_at<std::uint64_t>(parse_json("{\"a\": 1e30}", "x"), "a", "a file");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "a file: key `a`: a number does not fit where it stands");
  }
}

TEST(Json, NestingHasALimit) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + "\"[[\\\"[[\"" + std::string(depth, ']');
  };
  EXPECT_NO_THROW(parse_json(nested(256), "x"));
  for (const std::size_t depth : {std::size_t{257}, std::size_t{200'000}}) try {
      parse_json(nested(depth), "job.json");
      FAIL() << "nothing was thrown";
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "job.json: nested deeper than 256 at byte 257");
    }
}

class JsonLines : public testing::Test {
 protected:
  JsonLinesScan scan(const std::string& content, std::uint64_t offset = 0) {
    write_file_atomic(scratch_ / "f", content);
    values_.clear();
    offsets_.clear();
    return scan_json_lines(scratch_ / "f", offset, [&](Json&& value, std::uint64_t at) {
      values_.push_back(value.dump());
      offsets_.push_back(at);
    });
  }
  Scratch scratch_;
  std::vector<std::string> values_;
  std::vector<std::uint64_t> offsets_;
};

TEST_F(JsonLines, WholeLinesWithTheirOffsets) {
  const JsonLinesScan found = scan("{\"a\":1}\n[2]\n\"x\"\n");
  EXPECT_THAT(values_, ElementsAre("{\"a\":1}", "[2]", "\"x\""));
  EXPECT_THAT(offsets_, ElementsAre(0, 8, 12));
  EXPECT_EQ(found.whole_bytes, 16u);
  EXPECT_EQ(found.lines, 3u);
  EXPECT_FALSE(found.cut_tail);
}

TEST_F(JsonLines, NoFileAndNothingInIt) {
  const JsonLinesScan none = scan_json_lines(scratch_ / "none", 0, [](Json&&, std::uint64_t) { FAIL(); });
  EXPECT_EQ(none.lines, 0u);
  EXPECT_FALSE(none.cut_tail);
  EXPECT_FALSE(scan("").cut_tail);
}

TEST_F(JsonLines, EveryCutOfTheLastLineLeavesTheOthers) {
  const std::string first = "{\"n\":1}\n", second = "{\"n\":22,\"text\":\"a b\"}\n";
  for (std::size_t cut = 1; cut < second.size(); ++cut) {
    const JsonLinesScan found = scan(first + second.substr(0, cut));
    EXPECT_THAT(values_, ElementsAre("{\"n\":1}")) << cut;
    EXPECT_EQ(found.whole_bytes, first.size()) << cut;
    EXPECT_TRUE(found.cut_tail) << cut;
  }
  EXPECT_FALSE(scan(first + second).cut_tail);
}

TEST_F(JsonLines, AnUnreadableLastLineIsLeft) {
  const JsonLinesScan found = scan("[1]\n\x01garbage\n");
  EXPECT_THAT(values_, ElementsAre("[1]"));
  EXPECT_EQ(found.whole_bytes, 4u);
  EXPECT_TRUE(found.cut_tail);
}

TEST_F(JsonLines, ABadLineElsewhereIsAnErrorWithItsOffset) {
  try {
    scan("[1]\nbad\n[3]\n");
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("bad line at byte 4"));
  }
  EXPECT_THROW(scan("[1]\n\n[3]\n"), Error);
}

TEST_F(JsonLines, TheErrorSaysWhatIsWrong) {
  const auto problem = [&](const std::string& line) {
    try {
      scan("[1]\n" + line + "\n[3]\n");
    } catch (const Error& e) {
      return std::string(e.what()).substr(scratch_.path().string().size());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(problem("hello"), "/f: bad line at byte 4: no JSON at its byte 1");
  EXPECT_EQ(problem("{\"x\":NaN}"), "/f: bad line at byte 4: no JSON at its byte 6");
  EXPECT_EQ(problem("[\"\xff\"]"), "/f: bad line at byte 4: its byte 3 is not UTF-8");
  EXPECT_EQ(problem(std::string(200'000, '[') + std::string(200'000, ']')),
            "/f: bad line at byte 4: nested deeper than 256 at its byte 257");
  EXPECT_EQ(problem(""), "/f: bad line at byte 4: it is empty");
}

TEST_F(JsonLines, ALongLineIsReadWhole) {
  const std::string text(300'000, 'x');
  scan("[1]\n\"" + text + "\"\n[3]\n");
  EXPECT_THAT(values_, ElementsAre("[1]", "\"" + text + "\"", "[3]"));
  EXPECT_THAT(offsets_, ElementsAre(0, 4, 300'007));
}

TEST_F(JsonLines, WhatIsNoFileIsAnErrorAndNeverWaitedFor) {
  ASSERT_EQ(::mkfifo((scratch_ / "fifo").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", scratch_ / "zero");
  for (const char* name : {"fifo", "zero"})
    EXPECT_THROW(scan_json_lines(scratch_ / name, 0, [](Json&&, std::uint64_t) {}), Error) << name;
}

TEST(LineCrc, IsThatOfAnIndependentProgram) {
  // Python: zlib.crc32(b'{"end":4')
  EXPECT_EQ(line_with_crc({{"end", 4}}), "{\"end\":4,\"crc\":\"3991f5c9\"}\n");
  EXPECT_EQ(check_line_crc("{\"end\":4}"), LineCrc::kNone);
  EXPECT_EQ(check_line_crc("{\"end\":5,\"crc\":\"3991f5c9\"}"), LineCrc::kWrong);
}

// One bit anywhere in a file of checked lines: what is taken is what was written, and the loss is told.
TEST_F(JsonLines, AFlippedBitIsNeverTaken) {
  const std::vector<std::string> wanted = {"{\"a\":0.34}", "{\"a\":1.5,\"b\":\"text\"}", "{\"end\":2}"};
  std::string whole;
  for (const std::string& line : wanted) whole += line_with_crc(Json::parse(line));
  EXPECT_FALSE(scan(whole).cut_tail);
  EXPECT_EQ(values_, wanted);
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = whole;
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      write_file_atomic(scratch_ / "f", text);
      std::size_t taken = 0, bad = 0;
      const JsonLinesScan found = scan_json_lines(
          scratch_ / "f", 0,
          [&](Json&& value, std::uint64_t) {
            ++taken;
            EXPECT_NE(std::find(wanted.begin(), wanted.end(), value.dump()), wanted.end())
                << text << value.dump();
          },
          [&](const BadContent& e) {
            ++bad;
            EXPECT_THAT(e.what(), HasSubstr("/f: bad line at byte "));
          });
      EXPECT_LT(taken, 3u) << text;
      EXPECT_TRUE(bad > 0 || found.cut_tail) << text;
    }
}

TEST_F(JsonLines, ALineWithoutAChecksumAmongOthersIsBad) {
  const std::string checked = line_with_crc({{"a", 1}}), plain = "{\"a\":1}\n";
  EXPECT_THROW(scan(plain + checked), Error);
  EXPECT_THROW(scan(checked + plain), Error);
  EXPECT_THROW(scan(checked + plain + checked), Error);
  scan(plain + plain);
  EXPECT_THAT(values_, ElementsAre("{\"a\":1}", "{\"a\":1}")) << "files of older versions have none";
}

TEST_F(JsonLines, FromAnOffsetOn) {
  const JsonLinesScan found = scan("[1]\n[2]\n[3]\n", 4);
  EXPECT_THAT(values_, ElementsAre("[2]", "[3]"));
  EXPECT_THAT(offsets_, ElementsAre(4, 8));
  EXPECT_EQ(found.whole_bytes, 12u);
  EXPECT_EQ(scan("[1]\n", 4).lines, 0u);
}

TEST_F(JsonLines, GoesOnAfterTheWriterDoes) {
  const JsonLinesScan first = scan("[1]\n[2");
  scan("[1]\n[2]\n", first.whole_bytes);
  EXPECT_THAT(values_, ElementsAre("[2]"));
}

TEST(Crc32, KnownValues) {
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);  // the check value of the CRC catalogue
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(crc32(bytes), 0x29058c73u);  // Python's zlib.crc32
}

// Bit by bit, as the polynomial is defined.
std::uint32_t slow_crc32(std::string_view bytes) {
  std::uint32_t c = 0xFFFFFFFFu;
  for (const char byte : bytes) {
    c ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
  }
  return c ^ 0xFFFFFFFFu;
}

TEST(Crc32, EveryLengthAndPlaceInMemory) {
  Random random(5);
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += static_cast<char>(random.below(256));
  for (std::size_t begin = 0; begin < 9; ++begin)
    for (std::size_t length = 0; length < 60; ++length) {
      const std::string_view part = std::string_view(bytes).substr(begin, length);
      ASSERT_EQ(crc32(part), slow_crc32(part)) << begin << " " << length;
    }
}

}  // namespace
}  // namespace warpsmith

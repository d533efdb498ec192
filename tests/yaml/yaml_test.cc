#include "warpsmith/yaml/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/base/random.h"

namespace warpsmith::yaml {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> lines_of(const Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const Diagnostic& d : diagnostics) lines.push_back(to_string(d));
  return lines;
}

Json good(std::string_view text) {
  Diagnostics mistakes;
  const Node node = load_text(text, "f.yaml", mistakes);
  EXPECT_THAT(lines_of(mistakes), IsEmpty());
  return to_json(node);
}

std::vector<std::string> bad(std::string_view text, const Limits& limits = {}) {
  Diagnostics mistakes;
  load_text(text, "f.yaml", mistakes, limits);
  return lines_of(mistakes);
}

// Such texts go into JSON, which throws where bytes are not UTF-8.
TEST(Load, EscapesAreUtf8) {
  const Json value = good(R"({"a\N": "\_x\N\L\P\x85\xe4\u20ac\U0001f600é"})");
  EXPECT_EQ(value,
            Json::parse(R"({"a\u0085": "\u00a0x\u0085\u2028\u2029\u0085\u00e4\u20ac\ud83d\ude00\u00e9"})"));
  EXPECT_NO_THROW(value.dump());
}

TEST(Load, TypesPlainScalarsByTheCoreSchema) {
  EXPECT_EQ(
      good("{a: 1, b: 1.5, c: true, d: null, e: yes, f: '1', g: 1e3, h: +7, i: .inf, j: 0x10}"),
      Json::parse(
          R"({"a":1,"b":1.5,"c":true,"d":null,"e":"yes","f":"1","g":1000.0,"h":7,"i":".inf","j":"0x10"})"));
}

TEST(Load, FollowsAliasesAndMergeKeys) {
  EXPECT_EQ(
      good("d: &d {p: 1, q: 2}\ne: {<<: *d, q: 3}\nf: *d\ng: {<<: [*d, {r: 4}]}"),
      Json::parse(R"({"d":{"p":1,"q":2},"e":{"p":1,"q":3},"f":{"p":1,"q":2},"g":{"p":1,"q":2,"r":4}})"));
}

TEST(Load, KnowsPlaces) {
  Diagnostics mistakes;
  const Node root = load_text("a: 1\nb:\n  - x\n  -   y\n", "f.yaml", mistakes);
  const Node& y = root.find("b")->items()[1];
  EXPECT_EQ(y.place().line, 4);
  EXPECT_EQ(y.place().column, 7);
  EXPECT_EQ(root.entries()[1].place.line, 2);
}

TEST(Mistakes, AreOneLineEach) {
  EXPECT_THAT(bad("\"a\\nb\\tc\\0\\e[31m\": 1\n\"a\\nb\\tc\\0\\e[31m\": 2\n"),
              ElementsAre("f.yaml:2:1: key `a\\nb\\tc\\x00\\x1b[31m` stands here twice (first in line 1)"));
  EXPECT_EQ(describe(Node::scalar({}, std::string(36, 'x') + "\xC3\xA9" + std::string(9, 'y'), false)),
            "`" + std::string(36, 'x') + "...`");
}

TEST(Load, TellsMistakesWithTheirPlace) {
  EXPECT_THAT(bad("a: 1\nb: 2\na: 3\n"),
              ElementsAre("f.yaml:3:1: key `a` stands here twice (first in line 1)"));
  EXPECT_THAT(bad("a: &x [*x]"), ElementsAre("f.yaml:1:8: an alias stands within its own anchor"));
  const std::string no_anchor = "f.yaml:1:4: bad YAML: the referenced anchor is not defined";
  EXPECT_THAT(bad("a: *x"), ElementsAre(AnyOf(no_anchor, no_anchor + ": x")));  // yaml-cpp 0.7; 0.8
  EXPECT_THAT(bad("a: 1\nb: \"\xc3(\"\n"),
              ElementsAre("f.yaml:2:5: byte 0xc3 is not UTF-8 (save the file as UTF-8)"));
  for (const char* text : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "a\x80"})
    EXPECT_EQ(bad(text).size(), 1u) << text;
  EXPECT_THAT(bad("a: \"\u00e4 \u20ac \U0001f600\"\n"), IsEmpty());
  EXPECT_THAT(bad("a:\n\tb: 1\n").at(0), HasSubstr("indent with spaces"));
  EXPECT_THAT(bad("a: {b: ${x}}\n").at(0), HasSubstr("needs quotes"));
  EXPECT_THAT(bad("? [k]\n: 1\n"), ElementsAre("f.yaml:1:3: a key must be a word, found a list"));
  EXPECT_THAT(
      bad("a: 1\n---\nb: 2\n"),
      ElementsAre("f.yaml:2:1: a second document begins here (a file holds one; take out the `---`)"));
  EXPECT_THAT(bad("a: !thing 1"), ElementsAre("f.yaml:1:4: tag `!thing` is not known here (take it out)"));
  EXPECT_THAT(bad(std::string_view("a\0b", 3)),
              ElementsAre("f.yaml:1:1: the file is no text: byte 1 is zero"));
  EXPECT_THAT(bad("a: [1, 2"), ElementsAre(::testing::StartsWith("f.yaml:1:1: bad YAML")));
}

TEST(Load, IsBounded) {
  EXPECT_THAT(bad(std::string(120, '[') + std::string(120, ']')),
              ElementsAre("f.yaml:1:101: nested more than 100 deep"));
  EXPECT_EQ(bad(std::string(100'000, '[')).size(), 1u);
  EXPECT_THAT(bad(std::string(99, '[') + std::string(99, ']')), IsEmpty());
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) bomb += (k == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(bad(bomb),
              ElementsAre("f.yaml:7:5: more than 1000000 values (aliases count as often as they are used)"));
  EXPECT_THAT(bad(std::string(3 << 20, 'x'), {.bytes = 2 << 20}),
              ElementsAre("f.yaml:1:1: the file is larger than 2 MiB"));
  Diagnostics mistakes;
  load_file("/nonexistent.yaml", mistakes);
  EXPECT_EQ(mistakes.size(), 1u);
}

TEST(Reader, ReadsWhatFitsAndTellsTheRest) {
  Diagnostics mistakes;
  const Node root = load_text(
      "n: 5\nx: 2.5\nb: yes\ns: 5\nd: 90\nz: 4 apples\nw: gren\np: 2%\nlevl: 1\nl: x\n", "f.yaml", mistakes);
  MapReader map(root, "thing", mistakes);
  EXPECT_EQ(map.integer("n", {.low = 1, .high = 4}), std::nullopt);
  EXPECT_EQ(map.integer("x"), std::nullopt);
  EXPECT_EQ(map.number("x"), 2.5);
  EXPECT_EQ(map.boolean("b"), std::nullopt);
  EXPECT_EQ(map.string("s"), std::nullopt);
  EXPECT_EQ(map.text("s"), "5");
  EXPECT_EQ(map.seconds("d"), std::nullopt);
  EXPECT_EQ(map.bytes("z"), std::nullopt);
  const std::vector<std::string> words = {"red", "green"};
  EXPECT_EQ(map.word("w", words), std::nullopt);
  EXPECT_EQ(map.share("p"), 0.02);
  EXPECT_THAT(map.sequence("l"), IsEmpty());
  EXPECT_EQ(map.value("level", {.required = true}).has_value(), false);
  map.finish();
  EXPECT_THAT(
      lines_of(mistakes),
      ElementsAre(
          "f.yaml:1:4: `n`: 5 is out of range (1 to 4)",
          "f.yaml:2:4: `x`: expected an integer, found the number 2.5",
          "f.yaml:3:4: `b`: expected true or false, found `yes`",
          "f.yaml:4:4: `s`: expected a string, found the integer 5 (put it in quotes: \"5\")",
          "f.yaml:5:4: `d`: expected a duration, found the integer 90 (it has no unit: 90s, 90m or 90h)",
          "f.yaml:6:4: `z`: expected a size, found `4 apples` (such as 512MiB or 4GiB)",
          "f.yaml:7:4: `w`: `gren` is not known (did you mean `green`?)",
          "f.yaml:10:4: `l`: expected a list, found `x`", "f.yaml:1:1: thing: key `level` is missing",
          "f.yaml:9:1: thing: key `levl` is not known (did you mean `level`?)"));
}

// Where values stand, by their path: "a=3:1".
void collect_places(const Node& node, const std::string& path, std::vector<std::string>& out) {
  if (node.is_map())
    for (const Entry& entry : node.entries()) collect_places(entry.value, path + "." + entry.key, out);
  else if (node.is_sequence())
    for (std::size_t i = 0; i < node.items().size(); ++i)
      collect_places(node.items()[i], path + "." + std::to_string(i), out);
  else
    out.push_back(path + "=" + std::to_string(node.place().line) + ":" + std::to_string(node.place().column));
}

std::vector<std::string> places_in(std::string_view text) {
  Diagnostics mistakes;
  std::vector<std::string> out;
  collect_places(load_text(text, "f.yaml", mistakes), "", out);
  EXPECT_THAT(lines_of(mistakes), IsEmpty()) << text;
  return out;
}

TEST(Load, PutsAValueThatIsNotThereAtItsKey) {
  EXPECT_THAT(places_in("a:\nb: 1\n"), ElementsAre(".a=1:1", ".b=2:4"));
  EXPECT_THAT(places_in("a: 1\nb:\n# c\n\n  # d\n"), ElementsAre(".a=1:4", ".b=2:1"));
  EXPECT_THAT(places_in("a:\n  b:\n\nc:"), ElementsAre(".a.b=2:3", ".c=4:1"));
  EXPECT_THAT(places_in("{a: , b: ~, c}"), ElementsAre(".a=1:2", ".b=1:10", ".c=1:13"));
  EXPECT_THAT(places_in("a: ~\nb: null\nc:\n  ~\nd: &x\ne: 1\n"),
              ElementsAre(".a=1:4", ".b=2:4", ".c=4:3", ".d=5:4", ".e=6:4"));
  EXPECT_THAT(places_in("-\n- # x\n\n- a:\n-   -\n- ~\n"),
              ElementsAre(".0=1:1", ".1=2:1", ".2.a=4:3", ".3.0=5:5", ".4=6:3"));
  EXPECT_THAT(places_in("k:\n- 1\n-\nn: 2\n"), ElementsAre(".k.0=2:3", ".k.1=3:1", ".n=4:4"));
  for (const char* text : {"", "\n\n", "# only\n# comments\n", "\xEF\xBB\xBF", "---\n# c\n\n"})
    EXPECT_THAT(places_in(text), ElementsAre("=1:1")) << text;
  EXPECT_THAT(places_in("# c\n--- # d\n"), ElementsAre("=2:1"));
}

TEST(Load, CountsColumnsInCharacters) {
  EXPECT_THAT(places_in("{\u00e4: 1, \u20ac: [2, \"\U0001f600\", 3]}"),
              ElementsAre(".\u00e4=1:5", ".\u20ac.0=1:12", ".\u20ac.1=1:15", ".\u20ac.2=1:20"));
  EXPECT_THAT(bad("a: \"\u20ac\" \xff\n"),
              ElementsAre("f.yaml:1:8: byte 0xff is not UTF-8 (save the file as UTF-8)"));
}

TEST(Load, RefusesAMergeKeyThatStandsTwice) {
  EXPECT_THAT(bad("d: &d {p: 1}\ne:\n  <<: *d\n  <<: *d\n"),
              ElementsAre("f.yaml:4:3: key `<<` stands here twice (first in line 3)"));
  EXPECT_THAT(bad("d: &d {p: 1}\ne: {<<: *d, q: 1, <<: {r: 1}}\n"),
              ElementsAre("f.yaml:2:19: key `<<` stands here twice (first in line 2)"));
  EXPECT_EQ(good("d: &d {p: 1}\ne: {\"<<\": 2, <<: *d}"),
            Json::parse(R"({"d": {"p": 1}, "e": {"<<": 2, "p": 1}})"));
}

TEST(Load, NamesCharactersThatCannotBeSeen) {
  const std::string help = " (delete it or type a plain space; within quotes it may stand)";
  const std::pair<const char*, const char*> rows[] = {
      {"device: cpu\u200b\n", "f.yaml:1:12: an invisible character: U+200B zero-width space"},
      {"a: 1\ndev\u00adice: cpu\n", "f.yaml:2:4: an invisible character: U+00AD soft hyphen"},
      {"a: 1\ndevice:\u00a0cpu\nb: 2\n", "f.yaml:2:8: an invisible character: U+00A0 no-break space"},
      {"a: 1\ndevice:\u00a0 cpu\nb: {c: 2}\n", "f.yaml:2:8: an invisible character: U+00A0 no-break space"},
      {"a:\n\u3000\u3000b: 1\n", "f.yaml:2:1: an invisible character: U+3000 ideographic space"},
      {"a: [x, \u20ac\ufeff, y]\n", "f.yaml:1:9: an invisible character: U+FEFF zero-width no-break space"},
      {"a: x\u202ey\n", "f.yaml:1:5: an invisible character: U+202E right-to-left override"},
      {"a: one\n  two\u2028three\n", "f.yaml:2:6: an invisible character: U+2028 line separator"},
      {"\u200e- x\n- y\n", "f.yaml:1:1: an invisible character: U+200E left-to-right mark"},
      {"a: x\U000e0041\n", "f.yaml:1:5: an invisible character: U+E0041 tag or variation selector"}};
  for (const auto& [text, mistake] : rows) EXPECT_THAT(bad(text), ElementsAre(mistake + help)) << text;
  // In comments nobody minds them, within quotes they are meant, and they are not blamed for other mistakes.
  for (const char* text : {"a: 1 # \u00a0\n", "a: \"x\u00a0y\"\n", "a: 'x\u200by'\n", "\ufeff# mark\na: 1\n"})
    EXPECT_THAT(bad(text), IsEmpty()) << text;
  EXPECT_THAT(bad("# \u00a0\na: b: c\n").at(0), HasSubstr("f.yaml:2:5: bad YAML: a `:`"));
  EXPECT_THAT(bad("t: \"\u00a0\"\na: b: c\n").at(0), HasSubstr("f.yaml:2:5: bad YAML: a `:`"));
  EXPECT_THAT(bad("\"a\u200b\": 1\n\"a\u200b\": 2\n"),
              ElementsAre("f.yaml:2:1: key `a\\u200b` stands here twice (first in line 1)"));
}

TEST(Load, RefusesControlCharacters) {
  for (const auto& [text, where] : {std::pair("a: x\x04y", "1:5: a control character: U+0004"),
                                    std::pair("# \x1b[31m\na: 1", "1:3: a control character: U+001B"),
                                    std::pair("a: \"x\x7f\"", "1:6: a control character: U+007F"),
                                    std::pair("a: 1\nb: \u009b", "2:4: a control character: U+009B")})
    EXPECT_THAT(bad(text), ElementsAre("f.yaml:" + std::string(where) +
                                       " (delete it; within double quotes it can be written as \\xNN)"));
}

TEST(Reader, TakesNothingForAMapWithoutKeys) {
  Diagnostics mistakes;
  MapReader map(load_text("a:\n", "f.yaml", mistakes).entries()[0].value, "thing", mistakes);
  EXPECT_TRUE(map.usable());
  EXPECT_EQ(map.integer("n", {.required = true}), std::nullopt);
  EXPECT_THAT(lines_of(mistakes), ElementsAre("f.yaml:1:1: thing: key `n` is missing"));
}

// Whatever the bytes, loading ends, and without an exception.
TEST(Load, NeverThrows) {
  Random random(random_key({2}));
  static constexpr std::string_view kBytes = "{}[]:,-#&*!|>'\"%@ \n\tab1?<~`\\\xC3\xA9\xFF";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(60); n > 0; --n) text += kBytes[random.below(kBytes.size())];
    Diagnostics mistakes;
    ASSERT_NO_THROW(to_json(load_text(text, "f.yaml", mistakes))) << text;
  }
}

}  // namespace
}  // namespace warpsmith::yaml

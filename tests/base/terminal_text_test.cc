#include "warpsmith/base/terminal_text.h"

#include <gtest/gtest.h>

#include "warpsmith/base/json.h"

namespace warpsmith {
namespace {

TEST(TerminalText, ShowsWhatWouldCommandATerminal) {
  const std::pair<std::string, std::string> rows[] = {
      {"", ""},
      {"a\tb\nc\r\nd", "a\tb\nc\nd"},
      {"\x1b[31mred\x1b[0m", "\\u001b[31mred\\u001b[0m"},
      {"\x1b]0;title\a", "\\u001b]0;title\\u0007"},
      {std::string("a\0b", 3), "a\\u0000b"},
      {"100%\r 10%", "100%\\u000d 10%"},
      {"\b\x7f\v", "\\u0008\\u007f\\u000b"},
      {"\xc2\x9b"
       "2J",
       "\\u009b2J"},  // CSI of C1, as UTF-8
      {"\x9b"
       "2J",
       "\\x9b2J"},  // … and as a byte
      {"a\xe2\x80\xae"
       "b",
       "a\\u202eb"},  // right to left
      {"\xe2\x81\xa6x\xe2\x81\xa9", "\\u2066x\\u2069"},
      {"\xe2\x80\x8f\xd8\x9c", "\\u200f\\u061c"},
      {"\xe2\x80\xa8", "\\u2028"},
      {"\xff\xc3", "\\xff\\xc3"},           // no UTF-8
      {"\xc0\x9b", "\\xc0\\x9b"},           // longer than need be
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // a surrogate
      {"µ 日本 😀 é", "µ 日本 😀 é"},
      {"\\u001b", "\\u001b"},
  };
  for (const auto& [text, shown] : rows) EXPECT_EQ(terminal_text(text), shown);
}

TEST(TerminalText, JsonKeepsItsValue) {
  const Json value = {{"a", "\x1b[2J \x7f \xc2\x9b \xe2\x80\xae µ \n"}, {"b\xe2\x81\xa6", {1, 2}}};
  const std::string text = terminal_text(value.dump(2));
  EXPECT_EQ(Json::parse(text), value) << text;
  EXPECT_EQ(text.find('\x7f'), std::string::npos);
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
}

}  // namespace
}  // namespace warpsmith

#include "warpsmith/base/terminal_text.h"

#include <cstdio>

#include "warpsmith/base/untrusted.h"

namespace warpsmith {

namespace {

char32_t character_at(std::string_view text, std::size_t length) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  char32_t code = length == 1 ? byte(0) : byte(0) & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3Fu);
  return code;
}

bool commands_a_terminal(char32_t c) {
  if (c == '\n' || c == '\t') return false;
  return c < 0x20 || (c >= 0x7F && c < 0xA0) ||                         // C0, DEL, C1
         c == 0x061C || c == 0x200E || c == 0x200F ||                   // marks of direction
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);  // line ends, embedded directions
}

std::size_t length_of_character(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  char escaped[8];
  while (!text.empty()) {
    std::string_view good = text.substr(0, first_not_utf8(text));
    text.remove_prefix(good.size());
    while (!good.empty()) {
      const std::size_t length = length_of_character(good.front());
      const char32_t code = character_at(good, length);
      if (code == '\r' && good.substr(1).starts_with('\n')) {
        // The newline follows.
      } else if (commands_a_terminal(code)) {
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(code));
        out += escaped;
      } else {
        out += good.substr(0, length);
      }
      good.remove_prefix(length);
    }
    if (text.empty()) break;
    std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(text.front()));
    out += escaped;
    text.remove_prefix(1);
  }
  return out;
}

void print_terminal_text(std::FILE* to, std::string_view text) {
  const std::string safe = terminal_text(text);
  std::fwrite(safe.data(), 1, safe.size(), to);
}

}  // namespace warpsmith

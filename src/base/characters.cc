#include "warpsmith/base/characters.h"

#include <algorithm>
#include <array>

namespace warpsmith {

namespace {

struct Range {
  char32_t first, last;
  std::string_view name;
};
// In order. Names as Unicode has them, or what a range of them has in common.
constexpr std::array<Range, 35> kInvisible = {{{0x85, 0x85, "next line"},
                                               {0xA0, 0xA0, "no-break space"},
                                               {0xAD, 0xAD, "soft hyphen"},
                                               {0x34F, 0x34F, "combining grapheme joiner"},
                                               {0x61C, 0x61C, "Arabic letter mark"},
                                               {0x115F, 0x1160, "Hangul filler"},
                                               {0x1680, 0x1680, "Ogham space"},
                                               {0x17B4, 0x17B5, "Khmer inherent vowel"},
                                               {0x180B, 0x180D, "Mongolian variation selector"},
                                               {0x180E, 0x180E, "Mongolian vowel separator"},
                                               {0x2000, 0x200A, "typographic space"},
                                               {0x200B, 0x200B, "zero-width space"},
                                               {0x200C, 0x200C, "zero-width non-joiner"},
                                               {0x200D, 0x200D, "zero-width joiner"},
                                               {0x200E, 0x200E, "left-to-right mark"},
                                               {0x200F, 0x200F, "right-to-left mark"},
                                               {0x2028, 0x2028, "line separator"},
                                               {0x2029, 0x2029, "paragraph separator"},
                                               {0x202A, 0x202A, "left-to-right embedding"},
                                               {0x202B, 0x202B, "right-to-left embedding"},
                                               {0x202C, 0x202C, "pop directional formatting"},
                                               {0x202D, 0x202D, "left-to-right override"},
                                               {0x202E, 0x202E, "right-to-left override"},
                                               {0x202F, 0x202F, "narrow no-break space"},
                                               {0x205F, 0x205F, "mathematical space"},
                                               {0x2060, 0x2060, "word joiner"},
                                               {0x2061, 0x2064, "invisible operator"},
                                               {0x2066, 0x2069, "directional isolate"},
                                               {0x206A, 0x206F, "formatting character"},
                                               {0x3000, 0x3000, "ideographic space"},
                                               {0x3164, 0x3164, "Hangul filler"},
                                               {0xFE00, 0xFE0F, "variation selector"},
                                               {0xFEFF, 0xFEFF, "zero-width no-break space"},
                                               {0xFFA0, 0xFFA0, "Hangul filler"},
                                               {0xE0000, 0xE0FFF, "tag or variation selector"}}};

}  // namespace

Utf8Character utf8_character(std::string_view text, std::size_t at) {
  constexpr Utf8Character kBad = {0xFFFD, 1};
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (bytes == 0 || bytes > text.size() - at) return kBad;
  char32_t code = first & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xC0) != 0x80) return kBad;
    code = code << 6 | (byte & 0x3Fu);
  }
  return {code, bytes};
}

bool is_control_character(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  return code < 0x20 || (code >= 0x7F && code < 0xA0 && code != 0x85);
}

std::string_view invisible_name(char32_t code) {
  const auto after = std::upper_bound(kInvisible.begin(), kInvisible.end(), code,
                                      [](char32_t c, const Range& range) { return c < range.first; });
  if (after == kInvisible.begin()) return {};
  const Range& range = *std::prev(after);
  return code <= range.last ? range.name : std::string_view();
}

}  // namespace warpsmith

// Characters of Unicode, for those who must tell people about them.
#pragma once

#include <cstddef>
#include <string_view>

namespace warpsmith {

// A character and the bytes that it takes in UTF-8.
struct Utf8Character {
  char32_t code = 0;
  std::size_t bytes = 1;
};
// The character at byte `at`, which must be below the text's size. U+FFFD and one byte where it is not UTF-8.
Utf8Character utf8_character(std::string_view text, std::size_t at);

// Control characters that no text file needs: all but tab, line feed and carriage return. Some steer
// terminals.
bool is_control_character(char32_t code);

// "no-break space" of U+00A0: the name of a character that cannot be told from a plain space or from nothing.
// Empty for all others. Those below U+0080 have no name here.
std::string_view invisible_name(char32_t code);

}  // namespace warpsmith

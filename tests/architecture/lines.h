// How long a line of a document or a comment may be.
#pragma once

#include <algorithm>
#include <string>

inline constexpr std::size_t kLongestLine = 110;

inline std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

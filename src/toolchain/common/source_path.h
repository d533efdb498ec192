// Paths that candidates may name: of their own files, of headers.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>

namespace warpsmith::toolchain {

inline constexpr std::size_t kLongestPart = 100;  // of a path, in letters: file systems end at 143 to 255
inline constexpr std::size_t kLongestPath = 400;

// No path out of the folder: letters, digits, `_`, `-`, `.` and `/`, and no part of it begins with a point
// or is longer than file systems take.
inline bool is_plain_path(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
  });
  std::size_t part = 0, longest = 0;
  for (const char c : name) longest = std::max(longest, part = c == '/' ? 0 : part + 1);
  return plain && longest <= kLongestPart && name.size() <= kLongestPath && !name.empty() &&
         !name.starts_with(".") && !name.starts_with("/") && !name.starts_with("-") && !name.ends_with("/") &&
         name.find("/.") == std::string_view::npos && name.find("//") == std::string_view::npos &&
         name.find("/-") == std::string_view::npos;
}

}  // namespace warpsmith::toolchain

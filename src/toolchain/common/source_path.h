// How the files of a candidate of several may be called, and how much they may be: tiers `extension` and
// `python`.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace warpsmith::toolchain {

inline constexpr std::size_t kMostFiles = 32;
inline constexpr std::size_t kMostBytes = 1 << 20;
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

// One of the paths that would have to be a folder too, for another lies in it; empty where there is none.
inline std::string file_and_folder(const std::set<std::string>& paths) {
  for (const std::string& path : paths)
    if (const auto in = paths.lower_bound(path + "/"); in != paths.end() && in->starts_with(path + "/"))
      return path;
  return "";
}

// A path as a message shows it.
inline std::string shown_path(const std::string& path) {
  return path.size() <= kLongestPart ? path : path.substr(0, kLongestPart) + "…";
}

}  // namespace warpsmith::toolchain

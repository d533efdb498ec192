// How the files of a candidate of several may be called, and how much they may be: tiers `extension` and `python`.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

namespace warpsmith::toolchain {

inline constexpr std::size_t kMostFiles = 32;
inline constexpr std::size_t kMostBytes = 1 << 20;

// No path out of the folder: letters, digits, `_`, `-`, `.` and `/`, and no part of it begins with a point.
inline bool is_plain_path(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
  });
  return plain && !name.empty() && !name.starts_with(".") && !name.starts_with("/") &&
         !name.starts_with("-") && !name.ends_with("/") && name.find("/.") == std::string_view::npos &&
         name.find("//") == std::string_view::npos && name.find("/-") == std::string_view::npos;
}

// C++ and CUDA, by its ending.
inline bool is_native_source(std::string_view path) {
  constexpr std::array<std::string_view, 8> kEndings = {".cu",  ".cpp", ".cc",  ".cxx",
                                                        ".cuh", ".h",   ".hpp", ".inl"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view e) { return path.ends_with(e); });
}

}  // namespace warpsmith::toolchain

// Cells of CSV files.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

namespace warpsmith::report {

// RFC 4180: quoted where it must be. Text is exact, control characters and a leading `=` included: programs
// read this. results/figures.md says what spreadsheets do with it.
inline std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}
inline std::string cell(std::int64_t value) { return std::to_string(value); }
inline std::string cell(bool value) { return value ? "1" : "0"; }
inline std::string cell(double value) { return fmt::format("{}", value); }

template <typename T>
std::string cell(const std::optional<T>& value) {
  return value ? cell(*value) : "";
}

}  // namespace warpsmith::report

#include "warpsmith/base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace warpsmith {

namespace {

// Reads a non-negative decimal number at the front of `text` and takes it off.
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || value < 0 || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::string_view take_letters(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && std::isalpha(static_cast<unsigned char>(text[n])) != 0) ++n;
  const std::string_view letters = text.substr(0, n);
  text.remove_prefix(n);
  return letters;
}

std::optional<double> whole_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What Slurm writes: m:s, h:m:s, d-h, d-h:m, d-h:m:s. Only the first number may be 60 or more, or 24 hours.
std::optional<double> clock_seconds(std::string_view text) {
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  const auto days = whole_number(has_days ? text.substr(0, dash) : "0");
  if (has_days) text.remove_prefix(dash + 1);
  const std::vector<std::string> parts = split(text, ':');
  if (!days || parts.size() > 3 || (!has_days && parts.size() < 2)) return std::nullopt;
  double total = 0;
  double unit = has_days || parts.size() == 3 ? 3600 : 60;
  for (std::size_t i = 0; i < parts.size(); ++i, unit /= 60) {
    const auto value = whole_number(parts[i]);
    if (!value || (i > 0 && *value >= 60) || (i == 0 && has_days && *value >= 24)) return std::nullopt;
    total += *value * unit;
  }
  return *days * 86400 + total;
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  double total_ms = 0;
  if (text.empty()) return std::nullopt;
  if (text.find_first_of(":-") != std::string_view::npos) {
    const auto seconds = clock_seconds(text);
    if (!seconds) return std::nullopt;
    total_ms = *seconds * 1000;
  } else {
    while (!text.empty()) {
      const auto value = take_number(text);
      if (!value) return std::nullopt;
      const std::string_view unit = take_letters(text);
      if (unit == "ms")
        total_ms += *value;
      else if (unit == "s")
        total_ms += *value * 1e3;
      else if (unit == "m" || unit == "min")
        total_ms += *value * 60e3;
      else if (unit == "h")
        total_ms += *value * 3600e3;
      else if (unit == "d")
        total_ms += *value * 86400e3;
      else
        return std::nullopt;
    }
  }
  if (total_ms > 1e15) return std::nullopt;
  return std::chrono::milliseconds(std::llround(total_ms));
}

std::string format_duration(std::chrono::milliseconds duration) {
  const long long ms = duration.count();
  char out[64];
  if (ms < 1000)
    std::snprintf(out, sizeof out, "%lldms", ms);
  else if (ms < 10'000)
    std::snprintf(out, sizeof out, "%.1fs", static_cast<double>(ms) / 1e3);
  else if (ms < 60'000)
    std::snprintf(out, sizeof out, "%llds", ms / 1000);
  else if (ms < 3'600'000)
    std::snprintf(out, sizeof out, "%lldm%02llds", ms / 60'000, ms / 1000 % 60);
  else
    std::snprintf(out, sizeof out, "%lldh%02lldm", ms / 3'600'000, ms / 60'000 % 60);
  return out;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto value = take_number(text);
  if (!value) return std::nullopt;
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  std::string unit(text);
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  static constexpr std::array<std::string_view, 5> kPrefixes = {"", "K", "M", "G", "T"};
  double factor = 1;
  for (const std::string_view prefix : kPrefixes) {
    const std::string p(prefix);
    if (unit == p || unit == p + "B" || (!p.empty() && unit == p + "IB")) {
      const double bytes = *value * factor;
      if (bytes > 9e18) return std::nullopt;
      return static_cast<std::uint64_t>(bytes);
    }
    factor *= 1024;
  }
  return std::nullopt;
}

std::string format_size(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  char out[64];
  std::snprintf(out, sizeof out, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return out;
}

std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> known) {
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<std::size_t> before_last, last, row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      before_last = std::exchange(last, row);
      row[0] = i;
      for (std::size_t j = 1; j <= b.size(); ++j) {
        row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
        const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
        if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    return row[b.size()];
  };
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::optional<std::string> nearest;
  for (const std::string& candidate : known) {
    const std::size_t d = distance(word, candidate);
    if (d < best) {
      best = d;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string printable(std::string_view text) {
  std::string out;
  bool inside = false;  // of a character of several bytes
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80)
      out += byte < ' ' || byte == 0x7F ? ' ' : c;
    else if (!inside || byte >= 0xC0)
      out += '?';
    inside = byte >= 0x80;
  }
  return out;
}

std::string trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

bool is_identifier(std::string_view text) {
  if (text.empty() || (std::isalpha(static_cast<unsigned char>(text[0])) == 0 && text[0] != '_'))
    return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

}  // namespace warpsmith

// Small text functions: durations and sizes as people write them, suggestions for misspelt words.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith {

// "90s", "15m", "2h", "1d", "1h30m", "500ms", and as Slurm writes them: "90:00" (m:s), "1:30:00" (h:m:s),
// "1-12" (d-h), "1-12:30" (d-h:m), "1-12:30:00". Nothing where it is no duration: a number without a unit is
// none.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);
// "850ms", "42s", "3m05s", "2h10m"
std::string format_duration(std::chrono::milliseconds duration);

// "512", "64KiB", "2MiB", "4GiB", "1TiB", also "4G" and "4GB" (read as binary). Bytes.
std::optional<std::uint64_t> parse_size(std::string_view text);
std::string format_size(std::uint64_t bytes);  // "1.5 GiB"

// The word of `known` nearest to `word`, if one is near enough to be what was meant.
std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> known);

// What somebody else wrote, for a terminal or a log: on one line, control characters as blanks, and `?` for
// each character that is no ASCII.
std::string printable(std::string_view text);

std::string trim(std::string_view text);
// `text` with `to` in each place of `from`, which is not empty; what was put in is not searched again.
std::string replaced(std::string text, std::string_view from, std::string_view to);
std::vector<std::string> split(std::string_view text, char separator);
std::vector<std::string> split_lines(std::string_view text);
bool is_identifier(std::string_view text);  // [A-Za-z_][A-Za-z0-9_-]*

}  // namespace warpsmith

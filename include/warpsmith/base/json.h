// JSON and JSON lines. Keys are sorted, so dump() of equal values is equal: it can be hashed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace warpsmith {

using Json = nlohmann::json;

// A whole number is asked for, and the value does not fit into its type.
class NumberDoesNotFit : public Json::exception {
 public:
  NumberDoesNotFit() : Json::exception(302, "a number does not fit where it stands") {}
};

// What the library says, without the name that it gives the error: "type must be string, but is number".
std::string in_words(const Json::exception& e);

}  // namespace warpsmith

// How whole numbers are read, wherever it is done. The library casts: 1e30 is undefined behaviour, -1 becomes
// 2^64 - 1 and 2^32 becomes 0.
template <typename T>
struct nlohmann::adl_serializer<
    T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>>> {
  template <typename J>
  static void to_json(J& json, T value) {
    nlohmann::to_json(json, value);
  }
  template <typename J>
  static void from_json(const J& json, T& value) {
    // The first double above the type's largest value is a power of two, which is exact.
    constexpr double kAbove = 2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
    constexpr double kLeast = static_cast<double>(std::numeric_limits<T>::min());
    bool fits = true;
    if (json.is_number_float()) {
      const auto number = json.template get<double>();
      fits = (number > kLeast - 1 || number == kLeast) && number < kAbove;
    } else if (json.is_number_unsigned()) {
      fits = std::in_range<T>(json.template get_ref<const std::uint64_t&>());
    } else if (json.is_number_integer()) {
      fits = std::in_range<T>(json.template get_ref<const std::int64_t&>());
    }
    if (!fits) throw warpsmith::NumberDoesNotFit();
    nlohmann::from_json(json, value);
  }
};

namespace warpsmith {

// Parses one value; throws Error naming `what` and the byte offset.
Json parse_json(std::string_view text, std::string_view what);
Json read_json_file(const std::filesystem::path& path);

// What a scan of a JSON-lines file found.
struct JsonLinesScan {
  std::uint64_t whole_bytes = 0;  // offset behind the last whole line that was taken
  std::uint64_t lines = 0;
  bool cut_tail = false;  // a last line without newline, or unreadable, was left
};

// Lines may carry a checksum: their last member is then `crc`, the CRC-32 of all that stands before `,"crc"`,
// as 8 digits: {"item":"a","crc":"0a1b2c3d"}.
enum class LineCrc { kNone, kGood, kWrong };
LineCrc check_line_crc(std::string_view line);
inline constexpr std::size_t kLineCrcBytes = 18;  // ,"crc":"0a1b2c3d"}
// Ends the object that begins at `begin` and lacks its last brace.
void append_line_crc(std::string& out, std::size_t begin);
// The object on one line, with a checksum and a newline. Text that is no UTF-8 is replaced.
std::string line_with_crc(const Json& object);

class BadContent;  // untrusted.h

// Calls `take(line value, offset)` for each whole line from `offset` on; a checksum is checked, and is not in
// the value. A last line that lacks its newline or does not parse is left alone (its writer may still be at
// it). Any other bad line throws BadContent with its offset; or, where `bad` is given, is handed to it and
// passed over. A line whose checksum is wrong is bad, and one without a checksum in a file whose others have
// one. A missing file has no lines.
JsonLinesScan scan_json_lines(const std::filesystem::path& path, std::uint64_t offset,
                              const std::function<void(Json&&, std::uint64_t)>& take,
                              const std::function<void(const BadContent&)>& bad = {});

// Typed access that names the key and the document in its error.
template <typename T>
T json_at(const Json& object, const char* key, std::string_view what);

// Sets `key` where there is a value.
template <typename T>
void json_put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

std::uint32_t crc32(std::string_view bytes);  // IEEE 802.3, as zlib's

}  // namespace warpsmith

#include "warpsmith/base/error.h"

template <typename T>
T warpsmith::json_at(const Json& object, const char* key, std::string_view what) {
  try {
    return object.at(key).get<T>();
  } catch (const nlohmann::json::exception& e) {
    throw Error(std::string(what) + ": key `" + key + "`: " + in_words(e));
  }
}

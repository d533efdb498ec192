#include "event_file.h"

#include <array>
#include <bit>

namespace warpsmith::controller {

namespace {

// A wire type of protobuf, and the fields of Event, Summary and Summary.Value that are written.
enum class Wire : unsigned { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
constexpr unsigned kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
constexpr unsigned kValue = 1;
constexpr unsigned kTag = 1, kSimpleValue = 2;

void put_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, unsigned field, Wire wire) {
  put_varint(out, field << 3 | static_cast<unsigned>(wire));
}

void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_key(out, field, Wire::kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_at(double wall_time) {
  std::string out;
  put_key(out, kWallTime, Wire::kFixed64);
  put_little_endian(out, std::bit_cast<std::uint64_t>(wall_time), 8);
  return out;
}

void put_masked_crc(std::string& out, std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  put_little_endian(out, std::rotr(crc, 15) + 0xA282EAD8U, 4);
}

std::string framed(std::string_view event) {
  std::string out;
  put_little_endian(out, event.size(), 8);
  put_masked_crc(out, std::string(out));
  out += event;
  put_masked_crc(out, event);
  return out;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
      table[i] = crc;
    }
    return table;
  }();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::string event_file_head(double wall_time) {
  std::string event = event_at(wall_time);
  put_bytes(event, kFileVersion, "brain.Event:2");
  return framed(event);
}

std::string scalars_event(double wall_time, std::int64_t step, const Scalars& scalars) {
  std::string event = event_at(wall_time), summary;
  put_key(event, kStep, Wire::kVarint);
  put_varint(event, static_cast<std::uint64_t>(step));
  for (const auto& [tag, scalar] : scalars) {
    std::string value;
    put_bytes(value, kTag, tag);
    put_key(value, kSimpleValue, Wire::kFixed32);
    put_little_endian(value, std::bit_cast<std::uint32_t>(static_cast<float>(scalar)), 4);
    put_bytes(summary, kValue, value);
  }
  put_bytes(event, kSummary, summary);
  return framed(event);
}

}  // namespace warpsmith::controller

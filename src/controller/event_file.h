// TensorBoard's event files: TFRecords (length, its masked CRC-32C, an `Event` in protobuf's wire format, its
// masked CRC-32C), of scalars alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warpsmith::controller {

std::uint32_t crc32c(std::string_view bytes);  // Castagnoli's polynomial

// What an event file begins with.
std::string event_file_head(double wall_time);

using Scalars = std::vector<std::pair<std::string, double>>;  // by tag; kept as float32
std::string scalars_event(double wall_time, std::int64_t step, const Scalars& scalars);

}  // namespace warpsmith::controller

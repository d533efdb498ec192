#include "warpsmith/base/json.h"

#include <array>
#include <fstream>

#include "warpsmith/base/files.h"

namespace warpsmith {

Json parse_json(std::string_view text, std::string_view what) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    throw Error(std::string(what) + ": bad JSON at byte " + std::to_string(e.byte));
  }
}

Json read_json_file(const std::filesystem::path& path) { return parse_json(read_file(path), path.string()); }

JsonLinesScan scan_json_lines(const std::filesystem::path& path, std::uint64_t offset,
                              const std::function<void(Json&&, std::uint64_t)>& take) {
  JsonLinesScan scan;
  scan.whole_bytes = offset;
  std::ifstream in(path, std::ios::binary);
  if (!in) return scan;
  in.seekg(static_cast<std::streamoff>(offset));
  std::string line;
  std::uint64_t bad_at = 0;
  bool bad = false;
  while (std::getline(in, line)) {
    if (bad) throw Error(path.string() + ": bad line at byte " + std::to_string(bad_at));
    if (in.eof()) {  // no newline behind it
      scan.cut_tail = true;
      break;
    }
    const std::uint64_t begin = scan.whole_bytes;
    Json value = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) {
      bad = true;
      bad_at = begin;
      continue;
    }
    scan.whole_bytes = begin + line.size() + 1;
    ++scan.lines;
    take(std::move(value), begin);
  }
  if (bad) scan.cut_tail = true;
  return scan;
}

namespace {

// kCrc[k][b]: what byte b does to the sum when k further bytes follow it.
constexpr auto kCrc = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    tables[0][b] = c;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t before = tables[k - 1][b];
      tables[k][b] = tables[0][before & 0xFF] ^ (before >> 8);
    }
  return tables;
}();

std::uint32_t little_endian(const char* p) {
  const auto at = [p](int i) { return std::uint32_t{static_cast<unsigned char>(p[i])} << (8 * i); };
  return at(0) | at(1) | at(2) | at(3);
}

}  // namespace

// Eight bytes at a time ("slicing by 8"): raw samples are checked each time that they are read.
std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t c = 0xFFFFFFFFu;
  const char* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    const std::uint32_t low = c ^ little_endian(p), high = little_endian(p + 4);
    c = kCrc[7][low & 0xFF] ^ kCrc[6][(low >> 8) & 0xFF] ^ kCrc[5][(low >> 16) & 0xFF] ^ kCrc[4][low >> 24] ^
        kCrc[3][high & 0xFF] ^ kCrc[2][(high >> 8) & 0xFF] ^ kCrc[1][(high >> 16) & 0xFF] ^ kCrc[0][high >> 24];
  }
  for (; left > 0; ++p, --left) c = kCrc[0][(c ^ static_cast<unsigned char>(*p)) & 0xFF] ^ (c >> 8);
  return c ^ 0xFFFFFFFFu;
}

}  // namespace warpsmith

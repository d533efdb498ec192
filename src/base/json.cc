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

std::uint32_t crc32(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
      table[i] = c;
    }
    return table;
  }();
  std::uint32_t c = 0xFFFFFFFFu;
  for (const char byte : bytes) c = kTable[(c ^ static_cast<unsigned char>(byte)) & 0xFF] ^ (c >> 8);
  return c ^ 0xFFFFFFFFu;
}

}  // namespace warpsmith

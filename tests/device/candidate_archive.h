// A candidate of tier `python` as the compile job leaves it, without extensions.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace warpsmith {

inline std::uint32_t crc32_of(const std::string& text) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

// A zip of stored files, by the format's own description (PKWARE APPNOTE 6.3,
// sections 4.3.7, 4.3.12, 4.3.16).
inline std::string stored_zip(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string out, directory;
  const auto add = [](std::string& to, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
  };
  for (const auto& [name, text] : files) {
    const std::uint64_t at = out.size();
    std::string facts;
    for (const int zero : {20, 0, 0, 0, 0x21}) add(facts, static_cast<std::uint64_t>(zero), 2);
    add(facts, crc32_of(text), 4);
    add(facts, text.size(), 4);
    add(facts, text.size(), 4);
    add(facts, name.size(), 2);
    add(facts, 0, 2);
    out += "PK\x03\x04" + facts + name + text;
    directory += "PK\x01\x02";
    add(directory, 20, 2);
    directory += facts;
    add(directory, 0, 6);
    add(directory, 0, 4);
    add(directory, at, 4);
    directory += name;
  }
  const std::uint64_t begin = out.size();
  out += directory + "PK\x05\x06";
  add(out, 0, 4);
  add(out, files.size(), 2);
  add(out, files.size(), 2);
  add(out, directory.size(), 4);
  add(out, begin, 4);
  add(out, 0, 2);
  return out;
}

inline std::string candidate_archive(const std::string& model) {
  return stored_zip(
      {{"index.json", R"({"schema": "warpsmith.python/1", "module": "model.py", "extensions": {}})"},
       {"source/model.py", model}});
}

}  // namespace warpsmith

// The character that stands for each byte in a byte-level vocabulary.
#pragma once

#include <string>
#include <vector>

namespace warpsmith::tokenizer {

inline std::vector<std::string> byte_characters() {
  std::vector<std::string> characters;
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool plain =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
    const unsigned code = plain ? byte : next++;
    characters.push_back(code < 0x80 ? std::string(1, static_cast<char>(code))
                                     : std::string{static_cast<char>(0xC0 | code >> 6),
                                                   static_cast<char>(0x80 | (code & 0x3F))});
  }
  return characters;
}

}  // namespace warpsmith::tokenizer

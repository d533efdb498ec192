// 64-bit little-endian ELF files, read with every bound checked: compilers of foreign source made them, or
// foreign code itself. Time and memory stay in proportion to the file.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::toolchain {

template <typename T>
bool read_at(std::string_view file, std::uint64_t offset, T* out) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  std::memcpy(out, file.data() + offset, sizeof(T));
  return true;
}

// Empty where there is none.
std::string_view string_at(std::string_view file, const Elf64_Shdr& strings, std::uint64_t offset);

struct ElfSection {
  std::string_view name;
  std::string_view bytes;  // empty for what takes no room in the file
  Elf64_Shdr header;
};

struct ElfSymbol {
  std::string_view name;
  Elf64_Sym entry;
};

// Views into the file that they were read from.
struct ElfContent {
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;  // of .symtab
};
// Nothing where it is no ELF file, cut short, or where sections lie upon each other.
std::optional<ElfContent> read_elf(std::string_view file);

// Of a symbol in C++, as the source has it: "_Z1ff" -> "f(float)". Nothing for what is no such name.
std::optional<std::string> demangle(const std::string& name);

}  // namespace warpsmith::toolchain

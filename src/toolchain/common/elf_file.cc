#include "elf_file.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace warpsmith::toolchain {

namespace {

std::string_view bytes_of(std::string_view file, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS || section.sh_offset > file.size() ||
      section.sh_size > file.size() - section.sh_offset)
    return {};
  return file.substr(section.sh_offset, section.sh_size);
}

// Where names share their ends, together they have more letters than the file; not many times as many.
constexpr std::uint64_t kLettersAByte = 4;

// False where more is taken than there is.
bool take(std::uint64_t* room, std::uint64_t bytes) {
  if (bytes > *room) return false;
  *room -= bytes;
  return true;
}

}  // namespace

std::string_view string_at(std::string_view file, const Elf64_Shdr& strings, std::uint64_t offset) {
  const std::string_view table = bytes_of(file, strings);
  if (offset >= table.size() || table.back() != '\0') return {};
  const std::size_t end = table.find('\0', offset);
  return table.substr(offset, end - offset);
}

std::optional<ElfContent> read_elf(std::string_view file) {
  Elf64_Ehdr head;
  if (!read_at(file, 0, &head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof(Elf64_Shdr))
    return std::nullopt;
  ElfContent content;
  content.sections.resize(head.e_shnum);
  for (std::size_t i = 0; i < content.sections.size(); ++i)
    if (!read_at(file, head.e_shoff + i * sizeof(Elf64_Shdr), &content.sections[i].header))
      return std::nullopt;
  if (head.e_shstrndx >= content.sections.size()) return std::nullopt;
  const Elf64_Shdr names = content.sections[head.e_shstrndx].header;
  std::uint64_t room = file.size(), letters = kLettersAByte * file.size();
  for (ElfSection& s : content.sections) {
    s.name = string_at(file, names, s.header.sh_name);
    s.bytes = bytes_of(file, s.header);
    const bool in_file = s.header.sh_type != SHT_NOBITS && s.header.sh_type != SHT_NULL;
    if (in_file && s.bytes.size() != s.header.sh_size) return std::nullopt;
    if (!take(&room, s.bytes.size()) || !take(&letters, s.name.size())) return std::nullopt;
  }
  for (const ElfSection& s : content.sections) {
    if (s.header.sh_type != SHT_SYMTAB || s.header.sh_link >= content.sections.size()) continue;
    const Elf64_Shdr& strings = content.sections[s.header.sh_link].header;
    ElfSymbol symbol;
    for (std::uint64_t at = sizeof(Elf64_Sym); read_at(s.bytes, at, &symbol.entry); at += sizeof(Elf64_Sym)) {
      symbol.name = string_at(file, strings, symbol.entry.st_name);
      if (!take(&letters, symbol.name.size())) return std::nullopt;
      content.symbols.push_back(symbol);
    }
  }
  return content;
}

std::optional<std::string> demangle(const std::string& name) {
  int status = 1;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? std::optional<std::string>(text.get()) : std::nullopt;
}

}  // namespace warpsmith::toolchain

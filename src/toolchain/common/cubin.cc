#include "cubin.h"

#include <algorithm>
#include <array>
#include <optional>

#include "elf_file.h"
#include "sass.h"
#include "warpsmith/base/error.h"

namespace warpsmith::toolchain {

namespace {

constexpr unsigned char kEntryFlag = 0x10;  // of a symbol: a kernel

// A list of attributes: format, number, and either two bytes of value or two of size and as many of data.
// Calls `take` with the number and the data of those that have a size.
template <typename Take>
void read_attributes(std::string_view info, const Take& take) {
  constexpr unsigned char kSized = 4;
  struct Head {
    unsigned char format, attribute;
    std::uint16_t size;
  } head;
  for (std::size_t at = 0; read_at(info, at, &head);) {
    at += sizeof(head);
    if (head.format != kSized) continue;
    take(head.attribute, info.substr(at, head.size));
    at = std::min(info.size(), at + head.size);
  }
}

// One entry of kParameter a parameter.
void read_kernel(std::string_view info, CubinKernel* kernel) {
  constexpr unsigned char kMaxThreads = 0x05, kParameter = 0x17;
  read_attributes(info, [&](unsigned char attribute, std::string_view data) {
    std::array<std::uint32_t, 3> block{};
    if (attribute == kMaxThreads && read_at(data, 0, &block))
      kernel->max_threads = static_cast<int>(std::uint64_t{block[0]} * block[1] * block[2]);
    kernel->parameters += attribute == kParameter;
  });
}

// Pairs of a symbol and what it takes.
void read_registers(std::string_view info, const std::vector<ElfSymbol>& symbols, CubinContent* content) {
  constexpr unsigned char kRegisters = 0x2f;
  constexpr std::uint32_t kMost = 255;
  read_attributes(info, [&](unsigned char attribute, std::string_view data) {
    std::array<std::uint32_t, 2> entry{};
    if (attribute != kRegisters || !read_at(data, 0, &entry)) return;
    // The first symbol, which has no name, is not in the list.
    if (entry[0] == 0 || entry[0] > symbols.size() || entry[1] > kMost) return;
    const auto kernel = content->kernels.find(symbols[entry[0] - 1].name);
    if (kernel != content->kernels.end()) kernel->second.registers = static_cast<int>(entry[1]);
  });
}

bool is_variable(const ElfSymbol& symbol, const std::vector<ElfSection>& sections, bool* constant) {
  if (ELF64_ST_TYPE(symbol.entry.st_info) != STT_OBJECT || symbol.entry.st_shndx >= sections.size())
    return false;
  const std::string_view section = sections[symbol.entry.st_shndx].name;
  *constant = section == ".nv.constant3";
  return *constant || section == ".nv.global" || section == ".nv.global.init";
}

// "hidden" of "$__hidden__30$1", which is what inline PTX declares.
std::optional<std::string> name_in_ptx(std::string_view name) {
  constexpr std::string_view kFront = "$__";
  const std::size_t line = name.rfind("__");
  if (!name.starts_with(kFront) || line <= kFront.size() || line + 2 >= name.size()) return std::nullopt;
  return std::string(name.substr(kFront.size(), line - kFront.size()));
}

// Without what stands in angle brackets at its end.
std::string_view without_template_arguments(std::string_view name) {
  if (!name.ends_with('>')) return name;
  int open = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    open += name[i] == '>' ? 1 : name[i] == '<' ? -1 : 0;
    if (open == 0) return name.substr(0, i);
  }
  return name;
}

}  // namespace

std::string name_in_source(const CubinVariable& variable) {
  if (const std::optional<std::string> name = name_in_ptx(variable.name)) return *name;
  const std::optional<std::string> demangled = demangle(variable.name);
  if (!variable.name.starts_with("_Z") || !demangled) return variable.name;
  const std::string_view name = without_template_arguments(*demangled);
  const std::size_t scope = name.rfind("::");
  return std::string(scope == std::string_view::npos ? name : name.substr(scope + 2));
}

CubinContent read_cubin(std::string_view file) {
  Elf64_Ehdr head;
  const std::optional<ElfContent> elf = read_elf(file);
  if (!elf || !read_at(file, 0, &head) || head.e_machine != kMachineCuda)
    throw Error("no cubin, or cut short");
  CubinContent content;
  content.linked = head.e_type == ET_EXEC;
  content.structures = sass_structures(*elf);
  for (const ElfSymbol& s : elf->symbols) {
    CubinVariable variable{std::string(s.name), s.entry.st_size, false};
    if (is_variable(s, elf->sections, &variable.constant)) content.variables.push_back(variable);
    if (ELF64_ST_TYPE(s.entry.st_info) == STT_FUNC && (s.entry.st_other & kEntryFlag) != 0)
      content.kernels.emplace(s.name, CubinKernel());
    content.heap = content.heap || (s.entry.st_shndx == SHN_UNDEF && s.name == "malloc");
  }
  constexpr std::string_view kInfo = ".nv.info.", kShared = ".nv.shared.";
  const auto kernel_of = [&](const ElfSection& s, std::string_view kind) -> CubinKernel* {
    if (!s.name.starts_with(kind)) return nullptr;
    const auto kernel = content.kernels.find(s.name.substr(kind.size()));
    return kernel != content.kernels.end() ? &kernel->second : nullptr;
  };
  for (const ElfSection& s : elf->sections) {
    if (s.name.starts_with(".text.") && has_matrix_instruction(s.bytes)) content.tensor_cores = true;
    if (s.name == ".nv.info") read_registers(s.bytes, elf->symbols, &content);
    if (CubinKernel* kernel = kernel_of(s, kInfo)) read_kernel(s.bytes, kernel);
    if (CubinKernel* kernel = kernel_of(s, kShared)) kernel->shared_bytes = s.header.sh_size;
  }
  return content;
}

}  // namespace warpsmith::toolchain

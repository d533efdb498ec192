#include "warpsmith/toolchain/code_structure.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "elf_file.h"
#include "object_code.h"
#include "sass.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#ifdef WARPSMITH_HAS_CAPSTONE
#include <capstone/capstone.h>
#endif

namespace warpsmith::toolchain {

namespace {

// Of parts in any order, but for empty ones; empty: of none.
std::string digest_of(std::vector<std::string> parts, std::string_view kind) {
  std::erase(parts, "");
  if (parts.empty()) return "";
  std::sort(parts.begin(), parts.end());
  Sha256 all;
  all.field(kind);
  for (const std::string& one : parts) all.field(one);
  return all.hex();
}

#ifdef WARPSMITH_HAS_CAPSTONE
// An instruction's name without what the choice of registers makes of it; empty for what only moves values
// between registers and memory: which of these there are depends on that choice, too.
std::string_view what_it_does(std::string_view name) {
  for (const std::string_view moves : {"mov", "vmov", "lea", "push", "pop", "xchg", "nop", "endbr"})
    if (name.starts_with(moves)) return "";
  // vfmadd132ss, vfmadd213ss and vfmadd231ss differ in which operand is overwritten.
  for (const std::string_view three : {"132", "213", "231"})
    if (const std::size_t at = name.find(three); at != std::string_view::npos && name.starts_with("vf"))
      return name.substr(0, at);
  return name;
}

// Capstone's decoder of x86-64, with operands.
class Decoder {
 public:
  Decoder() {
    if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle_) != CS_ERR_OK) return;
    cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON);
    instruction_ = cs_malloc(handle_);
  }
  ~Decoder() {
    if (instruction_ != nullptr) cs_free(instruction_, 1);
    if (handle_ != 0) cs_close(&handle_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Nothing where there is something that is no instruction; "" where it calls what `is_left_out` says.
  template <typename IsLeftOut>
  std::optional<std::string> structure(std::string_view code, std::uint64_t address,
                                       const IsLeftOut& is_left_out) {
    if (instruction_ == nullptr) return std::nullopt;
    std::vector<std::string> instructions;
    const auto* at = reinterpret_cast<const std::uint8_t*>(code.data());
    for (std::size_t left = code.size(); left > 0;) {
      if (!cs_disasm_iter(handle_, &at, &left, &address, instruction_)) return std::nullopt;
      const cs_insn& one = *instruction_;
      instructions.emplace_back(what_it_does(one.mnemonic));
      const std::span operands(one.detail->x86.operands, one.detail->x86.op_count);
      // Jumps and calls alone have such an address for an operand.
      if (!operands.empty() && operands[0].type == X86_OP_IMM &&
          is_left_out(static_cast<std::uint64_t>(operands[0].imm)))
        return "";
    }
    return digest_of(std::move(instructions), "function");
  }

 private:
  csh handle_ = 0;
  cs_insn* instruction_ = nullptr;
};

// A twin's program holds each kernel a second time, little optimised, in a form that calls a function before
// each access to memory: that tells nothing of the code's structure.
bool is_of_checked_form(std::string_view function) { return function.starts_with("__tsan"); }

std::string structure_of_twin(const ElfContent& elf) {
  std::vector<const ElfSymbol*> functions;
  std::set<std::uint64_t> checks;  // where their functions begin
  for (const ElfSymbol& symbol : elf.symbols) {
    if (ELF64_ST_TYPE(symbol.entry.st_info) != STT_FUNC) continue;
    if (is_of_checked_form(symbol.name))
      checks.insert(symbol.entry.st_value);
    else
      functions.push_back(&symbol);
  }
  Decoder decoder;
  std::vector<std::string> structures;
  for (const ElfSymbol* symbol : functions) {
    const Elf64_Sym& entry = symbol->entry;
    if (entry.st_shndx >= elf.sections.size()) continue;
    const ElfSection& section = elf.sections[entry.st_shndx];
    const std::uint64_t begin = entry.st_value - section.header.sh_addr;
    if (section.name != ".text" || entry.st_value < section.header.sh_addr || begin > section.bytes.size())
      continue;
    const std::optional<std::string> one =
        decoder.structure(section.bytes.substr(begin, entry.st_size), entry.st_value,
                          [&](std::uint64_t address) { return checks.contains(address); });
    if (!one) return "";
    structures.push_back(*one);
  }
  return digest_of(std::move(structures), "x86-64");
}
#else
std::string structure_of_twin(const ElfContent&) { return ""; }
#endif

bool has_section(const ElfContent& elf, std::string_view name) {
  return std::any_of(elf.sections.begin(), elf.sections.end(),
                     [&](const ElfSection& section) { return section.name == name; });
}

}  // namespace

std::string code_structure(const std::filesystem::path& binary) {
  const std::string file = read_file(binary);
  const std::optional<ElfContent> elf = read_elf(file);
  Elf64_Ehdr head;
  if (!elf || !read_at(file, 0, &head)) return "";
  if (head.e_machine == kMachineCuda) return digest_of(sass_structures(*elf), "SASS");
  if (head.e_machine != EM_X86_64) return "";
  if (!has_section(*elf, ".nv_fatbin") && !has_section(*elf, "__nv_relfatbin"))
    return structure_of_twin(*elf);
  ObjectCode code;
  add_object(file, {}, &code);
  return code.whole ? digest_of(std::move(code.structures), "SASS") : "";
}

}  // namespace warpsmith::toolchain

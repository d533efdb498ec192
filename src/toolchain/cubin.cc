#include "cubin.h"

#include <array>

#include "elf_file.h"
#include "warpsmith/base/error.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr unsigned char kEntryFlag = 0x10;  // of a symbol: a kernel
constexpr std::size_t kInstructionBytes = 16;

// The first 9 bits of an instruction are its operation, the next three the kinds of its operands. Found by
// having nvdisasm print what NVRTC 13.0 makes of mma, mma.sp, wgmma and tcgen05.mma for sm_80 to sm_120a; no
// other instruction of the datasets' candidates has one of these.
bool is_matrix_operation(std::uint64_t instruction) {
  constexpr std::array<std::uint64_t, 11> kOperations = {0x037,   // IMMA
                                                         0x03c,   // HMMA
                                                         0x03d,   // BMMA
                                                         0x03f,   // DMMA
                                                         0x07a,   // QMMA
                                                         0x07f,   // OMMA
                                                         0x1ea,   // UTCHMMA, UTCIMMA, UTCQMMA
                                                         0x1f0,   // HGMMA
                                                         0x1f1,   // IGMMA
                                                         0x1f2,   // BGMMA
                                                         0x1f3};  // QGMMA
  for (const std::uint64_t operation : kOperations)
    if ((instruction & 0x1ff) == operation) return true;
  return false;
}

bool has_matrix_operation(std::string_view code) {
  std::uint64_t instruction = 0;
  for (std::size_t at = 0; read_at(code, at, &instruction); at += kInstructionBytes)
    if (is_matrix_operation(instruction)) return true;
  return false;
}

// A list of attributes: format, number, and either two bytes of value or two of size and as many of data. One
// entry of kParameter a parameter.
CubinKernel read_kernel(std::string_view info) {
  constexpr unsigned char kSized = 4, kMaxThreads = 0x05, kParameter = 0x17;
  struct Head {
    unsigned char format, attribute;
    std::uint16_t size;
  } head;
  CubinKernel kernel;
  for (std::size_t at = 0; read_at(info, at, &head);) {
    at += sizeof(head);
    if (head.format != kSized) continue;
    std::array<std::uint32_t, 3> block{};
    if (head.attribute == kMaxThreads && read_at(info, at, &block))
      kernel.max_threads = static_cast<int>(std::uint64_t{block[0]} * block[1] * block[2]);
    kernel.parameters += head.attribute == kParameter;
    at += head.size;
  }
  return kernel;
}

bool is_variable(const ElfSymbol& symbol, const std::vector<ElfSection>& sections, bool* constant) {
  // `$str` and its like are texts of printf and assert.
  if (ELF64_ST_TYPE(symbol.entry.st_info) != STT_OBJECT || symbol.entry.st_shndx >= sections.size() ||
      symbol.name.empty() || symbol.name.front() == '$')
    return false;
  const std::string_view section = sections[symbol.entry.st_shndx].name;
  *constant = section == ".nv.constant3";
  return *constant || section == ".nv.global" || section == ".nv.global.init";
}

}  // namespace

CubinContent read_cubin(std::string_view file) {
  Elf64_Ehdr head;
  const std::optional<ElfContent> elf = read_elf(file);
  if (!elf || !read_at(file, 0, &head) || head.e_machine != kMachineCuda)
    throw Error("no cubin, or cut short");
  CubinContent content;
  for (const ElfSymbol& s : elf->symbols) {
    CubinVariable variable{std::string(s.name), s.entry.st_size, false};
    if (is_variable(s, elf->sections, &variable.constant)) content.variables.push_back(variable);
    if (ELF64_ST_TYPE(s.entry.st_info) == STT_FUNC && (s.entry.st_other & kEntryFlag) != 0)
      content.kernels.emplace(s.name, CubinKernel());
  }
  constexpr std::string_view kInfo = ".nv.info.";
  for (const ElfSection& s : elf->sections) {
    if (s.name.starts_with(".text.") && has_matrix_operation(s.bytes)) content.tensor_cores = true;
    if (!s.name.starts_with(kInfo)) continue;
    const auto kernel = content.kernels.find(std::string(s.name.substr(kInfo.size())));
    if (kernel != content.kernels.end()) kernel->second = read_kernel(s.bytes);
  }
  return content;
}

}  // namespace warpsmith::toolchain

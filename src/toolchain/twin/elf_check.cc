#include "elf_check.h"

#include "../common/elf_file.h"
#include "../common/tokens.h"
#include "warpsmith/base/files.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::uint64_t kMaxSegmentBytes = 256ull << 20;

// Functions that g++ calls by itself, and libm's. abort ends the process: verdict crash.
constexpr std::string_view kAllowedSymbols =
    "memcpy memset memmove memcmp abort powf pow expf exp exp2f exp2 exp10 exp10f logf log log2f log2 "
    "log10f log10 log1pf log1p expm1f expm1 sinf sin cosf cos sincosf sincos tanf tan asinf asin acosf "
    "acos atanf atan atan2f atan2 sinhf sinh coshf cosh tanhf tanh asinhf asinh acoshf acosh atanhf "
    "atanh cbrtf cbrt erff erf erfcf erfc lgammaf lgamma tgammaf tgamma fmodf fmod remainderf remainder "
    "hypotf hypot ldexpf ldexp scalbnf frexpf frexp floorf floor ceilf ceil truncf trunc rintf rint "
    "roundf round nearbyintf nearbyint fmaf fma sqrtf sqrt lrintf lrint lroundf lround sqrtf64 modff "
    "modf";

}  // namespace

std::string problem_of_shared_object(const fs::path& path) {
  const std::string file = read_file(path);
  Elf64_Ehdr head;
  if (!read_at(file, 0, &head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_type != ET_DYN ||
      head.e_shentsize != sizeof(Elf64_Shdr) || head.e_shnum == 0)
    return "the compiler left no shared object";
  for (std::size_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, head.e_phoff + i * sizeof(Elf64_Phdr), &segment))
      return "the shared object is cut short";
    if (segment.p_type == PT_LOAD && segment.p_memsz > kMaxSegmentBytes)
      return "global variables of over 256 MiB";
  }
  std::vector<Elf64_Shdr> sections(head.e_shnum);
  for (std::size_t i = 0; i < sections.size(); ++i)
    if (!read_at(file, head.e_shoff + i * sizeof(Elf64_Shdr), &sections[i]))
      return "the shared object is cut short";
  for (const Elf64_Shdr& s : sections) {
    if (s.sh_type == SHT_INIT_ARRAY || s.sh_type == SHT_PREINIT_ARRAY || s.sh_type == SHT_FINI_ARRAY)
      return kNoConstructors;
    if (s.sh_type == SHT_DYNAMIC) {
      for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= s.sh_size; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        if (!read_at(file, s.sh_offset + at, &entry)) return "the shared object is cut short";
        if (entry.d_tag == DT_INIT || entry.d_tag == DT_FINI || entry.d_tag == DT_INIT_ARRAY ||
            entry.d_tag == DT_PREINIT_ARRAY || entry.d_tag == DT_FINI_ARRAY)
          return kNoConstructors;
      }
    }
    if (s.sh_type == SHT_DYNSYM && s.sh_link < sections.size()) {
      for (std::uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= s.sh_size;
           at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        if (!read_at(file, s.sh_offset + at, &symbol)) return "the shared object is cut short";
        const std::string name(string_at(file, sections[s.sh_link], symbol.st_name));
        if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC) return "`" + name + "` is an indirect function";
        if (symbol.st_shndx == SHN_UNDEF && !is_listed(kAllowedSymbols, name))
          return "`" + name + "` is declared but not defined: device code has no host functions";
      }
    }
    if (s.sh_type == SHT_RELA) {
      for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= s.sh_size; at += sizeof(Elf64_Rela)) {
        Elf64_Rela r;
        if (!read_at(file, s.sh_offset + at, &r)) return "the shared object is cut short";
#if defined(__x86_64__)
        if (ELF64_R_TYPE(r.r_info) == R_X86_64_IRELATIVE) return "an indirect function";
#elif defined(__aarch64__)
        if (ELF64_R_TYPE(r.r_info) == R_AARCH64_IRELATIVE) return "an indirect function";
#endif
      }
    }
  }
  return "";
}

}  // namespace warpsmith::toolchain

// Machine code in shared objects, from bytes made here: whole ones, and what foreign code may put there. What
// nvcc itself makes: extension_test.cc.
#include "common/object_code.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "common/cubin.h"
#include "warpsmith/base/error.h"

namespace warpsmith::toolchain {
namespace {

const GpuTarget kHopper{9, 0, 'a'};
const GpuTarget kAmpere{8, 0, 0};

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

struct Section {
  std::string name, bytes;
  std::uint32_t type = SHT_PROGBITS, link = 0;
  std::uint64_t size = 0;  // of SHT_NOBITS
};

// The header, the sections' bytes, their names, the table of sections: of these the first is empty and the
// last has the names.
std::string elf_of(std::uint16_t machine, std::uint16_t type, std::vector<Section> sections) {
  sections.insert(sections.begin(), Section{"", "", SHT_NULL});
  sections.push_back({".shstrtab", "", SHT_STRTAB});
  std::string names(1, '\0'), out(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> table;
  for (const Section& s : sections) {
    Elf64_Shdr& header = table.emplace_back();
    header = {};
    header.sh_name = s.name.empty() ? 0 : static_cast<std::uint32_t>(names.size());
    if (!s.name.empty()) names += s.name + '\0';
    header.sh_type = s.type;
    header.sh_link = s.link;
    header.sh_offset = out.size();
    header.sh_size = s.type == SHT_NOBITS ? s.size : s.bytes.size();
    out += s.bytes;
  }
  table.back().sh_offset = out.size();
  table.back().sh_size = names.size();
  out += names;
  Elf64_Ehdr head = {};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_type = type;
  head.e_machine = machine;
  head.e_shoff = out.size();
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = static_cast<std::uint16_t>(table.size());
  head.e_shstrndx = static_cast<std::uint16_t>(table.size() - 1);
  std::memcpy(out.data(), &head, sizeof(head));
  for (const Elf64_Shdr& s : table) out += bytes_of(s);
  return out;
}

struct Kernel {
  std::string name;
  std::uint32_t registers = 0;
  std::uint64_t shared_bytes = 0;
  std::uint64_t instruction = 0;
};

std::string cubin_of(const std::vector<Kernel>& kernels, std::uint16_t type = ET_EXEC) {
  std::string names(1, '\0'), symbols(sizeof(Elf64_Sym), '\0'), info;
  std::vector<Section> sections;
  for (std::uint32_t i = 0; i < kernels.size(); ++i) {
    const Kernel& k = kernels[i];
    Elf64_Sym symbol = {};
    symbol.st_name = static_cast<std::uint32_t>(names.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_other = 0x10;
    names += k.name + '\0';
    symbols += bytes_of(symbol);
    if (k.registers > 0) {
      info += std::string("\x04\x2f\x08\x00", 4);
      info += bytes_of(i + 1) + bytes_of(k.registers);
    }
    sections.push_back({".text." + k.name, bytes_of(k.instruction) + bytes_of(std::uint64_t{0})});
    if (k.shared_bytes > 0) sections.push_back({".nv.shared." + k.name, "", SHT_NOBITS, 0, k.shared_bytes});
  }
  const auto strings = static_cast<std::uint32_t>(sections.size() + 1);
  sections.push_back({".strtab", names, SHT_STRTAB});
  sections.push_back({".symtab", symbols, SHT_SYMTAB, strings});
  sections.push_back({".nv.info", info, 0x70000000});
  return elf_of(190, type, std::move(sections));
}

std::string entry_of(std::string payload, std::uint16_t kind = 2) {
  payload.resize((payload.size() + 7) / 8 * 8);
  return bytes_of(kind) + bytes_of(std::uint16_t{0x101}) + bytes_of(std::uint32_t{64}) +
         bytes_of(std::uint64_t{payload.size()}) + std::string(48, '\0') + payload;
}

std::string container_of(const std::string& entries) {
  return bytes_of(std::uint32_t{0xBA55ED50}) + bytes_of(std::uint16_t{1}) + bytes_of(std::uint16_t{16}) +
         bytes_of(std::uint64_t{entries.size()}) + entries;
}

std::string object_of(const std::string& section, const std::string& name = ".nv_fatbin") {
  return elf_of(EM_X86_64, ET_DYN, {{".text", "code"}, {name, section}});
}

ObjectCode read(const std::string& object, const GpuTarget& target = kAmpere) {
  ObjectCode code;
  add_object(object, target, &code);
  return code;
}
CodeFacts facts(const std::string& object, const GpuTarget& target = kAmpere, const std::string& log = "") {
  return facts_of(read(object, target), log);
}
// What is known, as text.
std::string known(const CodeFacts& facts) { return to_json(facts).dump(); }

constexpr std::uint64_t kMatrix = 0x23c, kOther = 0x102;  // HMMA; a move
const Kernel kSmall{"small", 16, 0, kOther}, kLarge{"large", 128, 2048, kOther},
    kMma{"mma", 40, 256, kMatrix};

TEST(ObjectCode, OfAllKernelsTheMost) {
  const std::string both = container_of(entry_of(cubin_of({kSmall, kLarge}))) + std::string(8, '\0') +
                           container_of(entry_of(cubin_of({kMma})));
  EXPECT_EQ(known(facts(object_of(both))), R"({"registers":128,"shared_bytes":2048,"tensor_cores":true})");
  EXPECT_EQ(known(facts(object_of(container_of(entry_of(cubin_of({kSmall})))))),
            R"({"registers":16,"shared_bytes":0,"tensor_cores":false})");
  // Several objects count together.
  ObjectCode code = read(object_of(container_of(entry_of(cubin_of({kSmall})))));
  add_object(elf_of(EM_X86_64, ET_DYN, {{".text", "no kernels"}}), kAmpere, &code);
  add_object(object_of(container_of(entry_of(cubin_of({kLarge})))), kAmpere, &code);
  EXPECT_EQ(facts_of(code, "").registers, 128);
}

TEST(ObjectCode, WhatIsCudasOwnOfSharedMemoryIsLeftOut) {
  const std::vector<Kernel> kernels = {{"k", 32, 1024 + 512, kOther}};
  EXPECT_EQ(facts(object_of(container_of(entry_of(cubin_of(kernels)))), kHopper).shared_bytes, 512);
  EXPECT_EQ(facts(object_of(container_of(entry_of(cubin_of(kernels)))), kAmpere).shared_bytes, 1536);
  EXPECT_EQ(facts(object_of(container_of(entry_of(cubin_of(kernels, ET_REL)))), kHopper).shared_bytes, 1536)
      << "not linked";
}

TEST(ObjectCode, PartsCountWhereNothingIsLinked) {
  const std::string part = container_of(entry_of(cubin_of({kLarge}, ET_REL)));
  EXPECT_EQ(facts(object_of(part, "__nv_relfatbin")).registers, 128);
  const std::string linked =
      elf_of(EM_X86_64, ET_DYN,
             {{"__nv_relfatbin", part}, {".nv_fatbin", container_of(entry_of(cubin_of({kSmall})))}});
  EXPECT_EQ(facts(linked).registers, 16);
}

TEST(ObjectCode, SpillsAreTheAssemblersWord) {
  const auto lines = [](const std::string& name, int spills, int registers) {
    const std::string bytes = std::to_string(spills);
    return "ptxas info    : Compiling entry function '" + name + "' for 'sm_80'\n" +
           "ptxas info    : Function properties for " + name + "\n    8 bytes stack frame, " + bytes +
           " bytes spill stores, " + bytes + " bytes spill loads\n" + "ptxas info    : Used " +
           std::to_string(registers) + " registers, used 0 barriers\n";
  };
  const std::string object = object_of(container_of(entry_of(cubin_of({kSmall, kLarge}))));
  EXPECT_EQ(facts(object, kAmpere, lines("large", 48, 128) + lines("small", 0, 16)).spill_bytes, 96);
  EXPECT_EQ(facts(object, kAmpere, lines("large", 0, 128) + lines("small", 0, 16)).spill_bytes, 0);
  EXPECT_EQ(facts(object, kAmpere, lines("large", 48, 128)).spill_bytes, std::nullopt) << "one is missing";
  EXPECT_EQ(facts(object, kAmpere, lines("large", 48, 64) + lines("small", 0, 16)).spill_bytes, std::nullopt)
      << "of another kernel";
  const std::string cut = lines("large", 48, 128) + lines("small", 0, 16);
  EXPECT_EQ(facts(object, kAmpere, cut.substr(0, cut.rfind("ptxas"))).spill_bytes, std::nullopt);
  EXPECT_EQ(facts(object).spill_bytes, std::nullopt);
}

TEST(ObjectCode, WhatCannotBeReadIsNotKnown) {
  const std::string good = entry_of(cubin_of({kSmall})), mma = entry_of(cubin_of({kMma}));
  std::string wide = good, narrow = good, no_header = good;
  wide.replace(8, 8, bytes_of(~std::uint64_t{0}));
  narrow.replace(8, 8, bytes_of(std::uint64_t{8}));
  no_header.replace(4, 4, bytes_of(std::uint32_t{0}));
  std::string long_header = good;
  long_header.replace(4, 4, bytes_of(~std::uint32_t{0}));
  std::string past = container_of(good), other = container_of(good);
  past.replace(8, 8, bytes_of(std::uint64_t{1} << 63));
  other[0] = 'x';
  const std::string sections[] = {
      container_of(wide),
      container_of(narrow),
      container_of(no_header),
      container_of(long_header),
      past,
      other,
      container_of(good) + "rest of something",
      container_of(good + "cut"),
      container_of(good).substr(0, 40),
      container_of(good).substr(0, 12),
      container_of(""),
      container_of(good) + container_of(entry_of("ptx of another kernel", 1)),
      container_of(good + entry_of("\x28\xb5\x2f\xfd, compressed")),
      container_of(good + entry_of(elf_of(EM_X86_64, ET_DYN, {}))),
      container_of(good + entry_of(cubin_of({kLarge}).substr(0, 200))),
  };
  for (const std::string& section : sections)
    EXPECT_EQ(known(facts(object_of(section))), "{}") << (&section - sections);
  // Beside PTX of the same code machine code is what runs.
  EXPECT_EQ(facts(object_of(container_of(good + entry_of("ptx", 1)))).registers, 16);
  // What is seen is there, whatever else is.
  EXPECT_EQ(known(facts(object_of(container_of(mma) + "rest"))), R"({"tensor_cores":true})");
  EXPECT_EQ(known(facts(object_of(container_of(entry_of(cubin_of({{"k", 0, 0, kOther}, kSmall})))))),
            R"({"shared_bytes":0,"tensor_cores":false})")
      << "the registers of one are not told";
  EXPECT_EQ(known(facts(object_of(container_of(entry_of(cubin_of({{"k", 5000, 0, kOther}})))))),
            R"({"shared_bytes":0,"tensor_cores":false})");
  for (const std::string& object : {std::string(), std::string("no ELF"), elf_of(EM_X86_64, ET_DYN, {})})
    EXPECT_EQ(known(facts(object)), "{}");
}

TEST(ObjectCode, CutAndFlippedBytesAreReadWithinTheirBounds) {
  const std::string object =
      object_of(container_of(entry_of(cubin_of({kSmall, kLarge})) + entry_of("ptx", 1)) +
                container_of(entry_of(cubin_of({kMma}))));
  for (std::size_t size = 0; size < object.size(); ++size) facts(object.substr(0, size), kHopper);
  for (std::size_t at = 0; at < object.size(); ++at)
    for (const int bit : {0, 3, 7}) {
      std::string flipped = object;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      facts(flipped, kHopper);
    }
}

// Thousands of sections that are all the whole file, or names that all end in one long text, would take hours
// and all memory.
TEST(ObjectCode, SectionsAndNamesDoNotLieUponEachOther) {
  std::string cubin = cubin_of({kSmall});
  Elf64_Ehdr head;
  std::memcpy(&head, cubin.data(), sizeof(head));
  for (std::uint64_t i = 1; i < head.e_shnum; ++i) {
    Elf64_Shdr section;
    const std::uint64_t at = head.e_shoff + i * sizeof(section);
    std::memcpy(&section, cubin.data() + at, sizeof(section));
    if (section.sh_type != SHT_PROGBITS) continue;
    section.sh_offset = 0;
    section.sh_size = cubin.size();
    cubin.replace(at, sizeof(section), bytes_of(section));
  }
  EXPECT_THROW(read_cubin(cubin), Error);

  std::string symbols(sizeof(Elf64_Sym), '\0');
  Elf64_Sym symbol = {};
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbol.st_other = 0x10;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    symbol.st_name = i;
    symbols += bytes_of(symbol);
  }
  const auto with = [&](std::string names) {
    return elf_of(190, ET_EXEC,
                  {{".strtab", std::move(names), SHT_STRTAB}, {".symtab", symbols, SHT_SYMTAB, 1}});
  };
  EXPECT_THROW(read_cubin(with(std::string(1 << 20, 'x') + '\0')), Error);
  EXPECT_TRUE(read_cubin(with(std::string(1 << 20, 'x'))).kernels.contains("")) << "no end: no name";
}

TEST(CodeFacts, OfAPlan) {
  CubinFacts cubin;
  cubin.tensor_cores = true;
  EXPECT_EQ(known(facts_of(cubin)), R"({"tensor_cores":true})");
  cubin.kernels.resize(2);
  cubin.kernels[0].registers = 32;
  cubin.kernels[0].shared_bytes = 4096;
  cubin.kernels[1].registers = 255;
  cubin.kernels[1].spill_store_bytes = 100;
  cubin.kernels[1].spill_load_bytes = 20;
  EXPECT_EQ(known(facts_of(cubin)),
            R"({"registers":255,"shared_bytes":4096,"spill_bytes":120,"tensor_cores":true})");
  EXPECT_EQ(known(code_facts_from_json(to_json(facts_of(cubin)))), known(facts_of(cubin)));
  EXPECT_EQ(known(code_facts_from_json(Json::object())), "{}");
}

}  // namespace
}  // namespace warpsmith::toolchain

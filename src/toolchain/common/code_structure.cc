#include "warpsmith/toolchain/code_structure.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "compile_cache.h"
#include "elf_file.h"
#include "object_code.h"
#include "sass.h"
#include "warpsmith/base/files.h"

namespace warpsmith::toolchain {

namespace {

bool has_section(const ElfContent& elf, std::string_view name) {
  return std::any_of(elf.sections.begin(), elf.sections.end(),
                     [&](const ElfSection& section) { return section.name == name; });
}

std::string structure_of_twin(const std::filesystem::path& binary) {
  return read_cached_facts(binary, [](const Json& facts) { return facts.value("code", ""); });
}

}  // namespace

std::string code_structure(const std::filesystem::path& binary) {
  const std::string file = read_file(binary);
  const std::optional<ElfContent> elf = read_elf(file);
  Elf64_Ehdr head;
  if (!elf || !read_at(file, 0, &head)) return "";
  if (head.e_machine == kMachineCuda) return digest_of_parts(sass_structures(*elf));
  if (!has_section(*elf, ".nv_fatbin") && !has_section(*elf, "__nv_relfatbin"))
    return structure_of_twin(binary);
  ObjectCode code;
  add_object(file, {}, &code);
  return code.whole ? digest_of_parts(std::move(code.structures)) : "";
}

}  // namespace warpsmith::toolchain

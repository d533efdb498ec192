#include "object_code.h"

#include <algorithm>
#include <map>

#include "cubin.h"
#include "cuda_log.h"
#include "elf_file.h"
#include "warpsmith/base/error.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::uint32_t kMagic = 0xBA55ED50;
constexpr std::uint16_t kMachineCode = 2;

// A container of CUDA's ("fatbin"), as nvcc 11 to 13 write it: this, entries behind `header_bytes`, and
// behind each container perhaps zeros up to a multiple of 8.
struct ContainerHead {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;  // of the entries
};
// The payload lies behind `header_bytes`. Compressed code does not begin as a cubin does.
struct EntryHead {
  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;  // of the payload, with what fills it up
};

void add_cubin(std::string_view cubin, const GpuTarget& target, ObjectCode* code) {
  try {
    const CubinContent content = read_cubin(cubin);
    code->tensor_cores = code->tensor_cores || content.tensor_cores;
    code->structures.insert(code->structures.end(), content.structures.begin(), content.structures.end());
    const std::uint64_t reserved = content.linked && target.major >= 9 ? kReservedShared : 0;
    for (const auto& [name, kernel] : content.kernels)
      code->kernels.push_back(
          {name, kernel.registers, kernel.shared_bytes - std::min(kernel.shared_bytes, reserved)});
  } catch (const Error&) {
    code->whole = false;
  }
}

// False where there is something that cannot be read. Of a container with PTX and no machine code the driver
// makes some that nobody sees here.
bool add_container(std::string_view entries, const GpuTarget& target, ObjectCode* code) {
  bool machine_code = false;
  EntryHead head;
  while (read_at(entries, 0, &head)) {
    if (head.header_bytes < sizeof(head) || head.header_bytes > entries.size()) return false;
    entries.remove_prefix(head.header_bytes);
    if (head.bytes > entries.size()) return false;
    if (head.kind == kMachineCode) {
      machine_code = true;
      add_cubin(entries.substr(0, head.bytes), target, code);
    }
    entries.remove_prefix(head.bytes);
  }
  return machine_code && entries.empty();
}

bool add_containers(std::string_view section, const GpuTarget& target, ObjectCode* code) {
  while (!section.empty()) {
    ContainerHead head;
    if (section.front() == '\0') {
      section.remove_prefix(std::min(section.find_first_not_of('\0'), section.size()));
      continue;
    }
    if (!read_at(section, 0, &head) || head.magic != kMagic || head.header_bytes < sizeof(head) ||
        head.header_bytes > section.size())
      return false;
    section.remove_prefix(head.header_bytes);
    if (head.bytes > section.size() || !add_container(section.substr(0, head.bytes), target, code))
      return false;
    section.remove_prefix(head.bytes);
  }
  return true;
}

using Known = std::optional<std::int64_t>;
Known known(std::uint64_t value) { return static_cast<std::int64_t>(value); }

// Of all kernels the most; nothing where it is not known of one.
template <typename Kernel, typename Of>
Known most(const std::vector<Kernel>& kernels, const Of& of) {
  std::int64_t most = -1;
  for (const Kernel& kernel : kernels) {
    const Known value = of(kernel);
    if (!value) return std::nullopt;
    most = std::max(most, *value);
  }
  return most >= 0 ? Known(most) : std::nullopt;
}

}  // namespace

void add_object(std::string_view shared_object, const GpuTarget& target, ObjectCode* code) {
  const std::optional<ElfContent> elf = read_elf(shared_object);
  if (!elf) {
    code->whole = false;
    return;
  }
  // What is linked holds what its parts hold (-rdc), which are not loaded.
  for (const std::string_view name : {".nv_fatbin", "__nv_relfatbin"}) {
    bool found = false;
    for (const ElfSection& section : elf->sections) {
      if (section.name != name || section.bytes.empty()) continue;
      found = true;
      code->whole = add_containers(section.bytes, target, code) && code->whole;
    }
    if (found) return;
  }
}

CodeFacts facts_of(const ObjectCode& code, std::string_view log) {
  CodeFacts facts;
  if (code.tensor_cores) facts.tensor_cores = true;
  if (!code.whole || code.kernels.empty()) return facts;
  facts.tensor_cores = code.tensor_cores;
  facts.registers = most(
      code.kernels, [](const KernelCode& k) { return k.registers >= 0 ? Known(k.registers) : std::nullopt; });
  facts.shared_bytes = most(code.kernels, [](const KernelCode& k) { return known(k.shared_bytes); });
  const std::map<std::string, KernelResources> told = read_resources(log);
  facts.spill_bytes = most(code.kernels, [&](const KernelCode& k) -> Known {
    const auto of_it = told.find(k.lowered);
    // Lines that were cut off would say 0.
    if (of_it == told.end() || of_it->second.registers != k.registers) return std::nullopt;
    return known(of_it->second.spill_store_bytes + of_it->second.spill_load_bytes);
  });
  return facts;
}

CodeFacts facts_of(const CubinFacts& cubin) {
  CodeFacts facts;
  facts.tensor_cores = cubin.tensor_cores;
  facts.registers = most(cubin.kernels, [](const KernelFacts& k) { return Known(k.registers); });
  facts.shared_bytes = most(cubin.kernels, [](const KernelFacts& k) { return known(k.shared_bytes); });
  facts.spill_bytes = most(
      cubin.kernels, [](const KernelFacts& k) { return known(k.spill_store_bytes + k.spill_load_bytes); });
  return facts;
}

}  // namespace warpsmith::toolchain

// What NVRTC prints, as the candidate's author should see it, and what it says of each kernel's resources.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace warpsmith::toolchain {

// Errors alone, each "kernel.cu:line:column: error: …" with the candidate's own place; nothing of this
// machine. Cut to `limit` bytes.
std::string readable_nvrtc_log(std::string_view log, std::size_t limit);

// Whether the assembler refused the source for no other reason than that the target lacks an instruction.
bool target_lacks_features(std::string_view log);

struct KernelResources {
  int registers = 0;
  std::uint64_t shared_bytes = 0, local_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
};
// By lowered name, from what --ptxas-options=-v prints.
std::map<std::string, KernelResources> read_resources(std::string_view log);

}  // namespace warpsmith::toolchain

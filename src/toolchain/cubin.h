// What the machine code of a cubin tells: variables, bounds of kernels, matrix instructions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::toolchain {

struct CubinVariable {
  std::string name;  // lowered
  std::uint64_t bytes = 0;
  bool constant = false;
};

struct CubinKernel {
  int max_threads = 0;  // of a block; 0: not bounded
  int parameters = 0;
  int registers = -1;              // of a thread; -1: not told
  std::uint64_t shared_bytes = 0;  // static, of a block; with what is CUDA's own (kReservedShared)
};

// Of capability 9.0 and later this much of a block's shared memory is CUDA's own, and counted in what is
// linked.
inline constexpr std::uint64_t kReservedShared = 1024;

struct CubinContent {
  std::vector<CubinVariable> variables;  // __device__ and __constant__, in the order of the symbol table
  std::map<std::string, CubinKernel, std::less<>> kernels;  // by lowered name
  bool linked = false;  // can be loaded; else a part that waits for others
  bool tensor_cores = false;
  bool heap = false;  // asks for memory of the device heap: `malloc`, `new`
};

// Throws Error where `file` is no cubin.
CubinContent read_cubin(std::string_view file);

}  // namespace warpsmith::toolchain

// What the machine code of a cubin tells: variables, bounds of kernels, matrix instructions.
#pragma once

#include <cstdint>
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
};

struct CubinContent {
  std::vector<CubinVariable> variables;  // __device__ and __constant__, in the order of the symbol table
  std::map<std::string, CubinKernel> kernels;  // by lowered name
  bool tensor_cores = false;
};

// Throws Error where `file` is no cubin.
CubinContent read_cubin(std::string_view file);

}  // namespace warpsmith::toolchain

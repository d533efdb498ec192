// What the machine code of a cubin tells: variables, bounds of kernels, matrix instructions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::toolchain {

// Memory that outlives a launch and that a kernel can reach; it can write to all of it, to constants by their
// address. As ptxas 13.0 makes code for sm_75 to sm_121 it is the objects of .nv.global, .nv.global.init and
// .nv.constant3, and these are their names:
//   "_ZN1a1nE", "_ZZ1kvE1n"   variables of the source, `static` ones of its functions, CUDA's headers' own
//   "$str", "$str$1"          string literals: printf's, assert's, names of files
//   "__unnamed_1"             __func__
//   "__cudart_i2opi_f"        tables of libdevice
//   "_ZTV1A"                  tables of virtual functions
//   "$__n__30", "$__n__30$1"  `n`, declared by inline PTX in a function (30: a line of the PTX)
// Inline PTX can also end the function that it is in, and declare variables of any other name.
// cuModuleGetGlobal finds each by its name (seen with driver 580 on an H100). Each has at least 256 bytes of
// its own there: what is left of them behind its end can be written too, stays, and has no name. Tables of
// jumps (.nv.constant2) and of addresses (.nv.constant4) have neither symbols nor addresses for a kernel.
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
  std::vector<CubinVariable> variables;                     // in the order of the symbol table
  std::map<std::string, CubinKernel, std::less<>> kernels;  // by lowered name
  bool linked = false;  // can be loaded; else a part that waits for others
  bool tensor_cores = false;
  std::vector<std::string> structures;  // of its functions (sass.h)
  bool heap = false;                    // asks for memory of the device heap: `malloc`, `new`
};

// As the source calls it: "n" of "_ZZ1kvE1n", "part" of a template's "_Z4partILi3EE", "hidden" of
// "$__hidden__30$1".
std::string name_in_source(const CubinVariable& variable);

// Throws Error where `file` is no cubin.
CubinContent read_cubin(std::string_view file);

}  // namespace warpsmith::toolchain

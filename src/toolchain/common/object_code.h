// What nvcc has put into a shared object: the machine code of its kernels. Everything is read with its bounds
// checked: the object may be made by foreign code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::toolchain {

struct KernelCode {
  std::string lowered;
  int registers = -1;              // of a thread; -1: not told
  std::uint64_t shared_bytes = 0;  // static, of a block
};

// Of one shared object or several.
struct ObjectCode {
  std::vector<KernelCode> kernels;
  std::vector<std::string> structures;  // of their functions (sass.h)
  bool tensor_cores = false;
  bool whole = true;  // false: there is code that could not be read, be it compressed or no machine code yet
};

// Adds what is in `shared_object`, whose code is for `target`. Never throws for what it reads.
void add_object(std::string_view shared_object, const GpuTarget& target, ObjectCode* code);

// `log`: what ptxas said with -v, of the spills alone it knows; empty: it said nothing.
CodeFacts facts_of(const ObjectCode& code, std::string_view log);

}  // namespace warpsmith::toolchain

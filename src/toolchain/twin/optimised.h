// What g++ has made of a program before it chooses instructions: GIMPLE, as -fdump-tree-optimized prints it.
#pragma once

#include <string>
#include <string_view>

namespace warpsmith::toolchain {

// A digest of the statements of all its functions, without names, constants and their order
// (code_structure.h). Empty: there is none. Never throws for what it reads.
std::string structure_of_optimised(std::string_view dump);

}  // namespace warpsmith::toolchain

// Machine code of NVIDIA's GPUs since Volta: instructions of 16 bytes. Their fields are documented nowhere;
// these were found by having nvdisasm print what NVRTC and nvcc 13.0 make for sm_80 to sm_120a.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "elf_file.h"

namespace warpsmith::toolchain {

inline constexpr std::uint16_t kMachineCuda = 190;  // of an ELF file

// Whether it is one of the matrix units'.
bool is_matrix_instruction(std::uint64_t first_half);
bool has_matrix_instruction(std::string_view code);

// A digest for each function of a cubin: operations, kinds of their operands and modifiers, without
// registers, predicates and constants.
std::vector<std::string> sass_structures(const ElfContent& cubin);

// Of parts in any order, but for empty ones; empty: of none.
std::string digest_of_parts(std::vector<std::string> parts);

}  // namespace warpsmith::toolchain

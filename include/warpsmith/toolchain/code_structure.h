// What a binary's machine code does, whoever wrote its source.
#pragma once

#include <filesystem>
#include <string>

namespace warpsmith::toolchain {

// A digest of the instructions of all functions in `binary`: a cubin (tier `plan` on a GPU), a shared object
// with CUDA's code in it (tier `extension`), or one of the CPU twin. Registers, constants, names, places in
// memory and the order of instructions in a function are taken out, for the CPU moves of values as well. So
// programs whose sources differ in names, layout, dead code or the order of independent lines have the same;
// so may two that index their data in another way, and the later one counts as known then. Empty where it
// cannot be told: no code, code in a form that is not read (PTX, compressed), or, for the CPU, a build
// without Capstone. Programs of unlike targets have unlike digests. Throws Error where the file cannot be
// read.
std::string code_structure(const std::filesystem::path& binary);

}  // namespace warpsmith::toolchain

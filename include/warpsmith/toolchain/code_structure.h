// What a binary's machine code does, whoever wrote its source.
#pragma once

#include <filesystem>
#include <string>

namespace warpsmith::toolchain {

// A digest of what the functions in `binary` do: a cubin (tier `plan` on a GPU), a shared object with CUDA's
// code in it (tier `extension`), both by their machine code, or one of the CPU twin, by what g++ had
// optimised before it chose instructions. Registers, constants, names, places in memory and the order within
// a function are taken out. So programs whose sources differ in names, layout, dead code or the order of
// independent lines have the same; so may two that index their data in another way, and the later one counts
// as known then. Programs of unlike targets have unlike digests. Empty where it cannot be told: no code, or
// code in a form that is not read (PTX, compressed). Throws Error where the file cannot be read.
std::string code_structure(const std::filesystem::path& binary);

}  // namespace warpsmith::toolchain

// The host's C++ compiler as a sandboxed, limited child.
#pragma once

#include <filesystem>
#include <string>

#include "../common/compiler_child.h"

namespace warpsmith::toolchain {

// Compiles `text` twice, into one shared object in `scratch`: its checked form (twin_abi.h) and then that for
// results and times. Throws Error where there is no compiler or no sandbox.
CompilerRun run_host_compiler(const std::string& text, const std::filesystem::path& scratch,
                              const CompileOptions& limits);

}  // namespace warpsmith::toolchain

// The host's C++ compiler as a sandboxed, limited child.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compiler_child.h"

namespace warpsmith::toolchain {

struct HostCompilerRun : CompilerRun {
  std::filesystem::path binary;  // kDone: in the scratch folder
};

// Compiles `text` into a shared object in `scratch`. Throws Error where there is no compiler or no sandbox.
HostCompilerRun run_host_compiler(const std::string& text, const std::vector<std::string>& options,
                                  const std::filesystem::path& scratch, const CompileOptions& limits);

}  // namespace warpsmith::toolchain

// The host's C++ compiler as a sandboxed, limited child.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/toolchain/host.h"

namespace warpsmith::toolchain {

struct CompilerRun {
  enum Outcome { kDone, kFailed, kTimedOut, kOverLimit, kViolation } outcome = kFailed;
  std::string output;            // what it printed
  std::string limit;             // kOverLimit: of what
  std::filesystem::path binary;  // kDone: in the scratch folder
};

// Compiles `text` into a shared object in `scratch`. Throws Error where there is no compiler or no sandbox.
CompilerRun run_host_compiler(const std::string& text, const std::vector<std::string>& options,
                              const std::filesystem::path& scratch, const CompileOptions& limits);

}  // namespace warpsmith::toolchain

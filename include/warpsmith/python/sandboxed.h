// A python3 in a sandbox, that runs a script of ours over modules of other people's.
#pragma once

#include <cstdint>
#include <filesystem>

#include "warpsmith/process/child.h"

namespace warpsmith::python {

// `script` and what the caller adds to `sandbox.read_only` can be read, `scratch` (its working folder)
// written. It sees no GPU, and has one thread. The caller sets its time limit, and appends words to its
// command. Throws Error where no sandbox is to be had and `unsandboxed` was not asked for.
process::ChildSpec sandboxed_python(const std::filesystem::path& python, const std::filesystem::path& script,
                                    const std::filesystem::path& scratch, std::uint64_t memory_bytes,
                                    bool unsandboxed);

}  // namespace warpsmith::python

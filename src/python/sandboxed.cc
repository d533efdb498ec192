#include "warpsmith/python/sandboxed.h"

#include "warpsmith/base/error.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/python/folders.h"

namespace warpsmith::python {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kOutputBytes = 64ull << 20;
constexpr int kProcesses = 16;

}  // namespace

process::ChildSpec sandboxed_python(const fs::path& python, const fs::path& script, const fs::path& scratch,
                                    std::uint64_t memory_bytes, bool unsandboxed) {
  process::ChildSpec spec;
  spec.argv = python_command(python);
  spec.argv.insert(spec.argv.end(), {"-s", "-B", script.string()});
  spec.environment = std::map<std::string, std::string>{{"PATH", "/usr/bin:/bin"},
                                                        {"HOME", scratch.string()},
                                                        {"TMPDIR", scratch.string()},
                                                        {"OMP_NUM_THREADS", "1"},
                                                        {"CUDA_VISIBLE_DEVICES", ""}};
  for (const auto& [name, value] : python_variables()) (*spec.environment)[name] = value;
  spec.folder = scratch;
  spec.limits.tree_memory_bytes = memory_bytes;
  spec.limits.output_bytes = kOutputBytes;
  spec.limits.processes = kProcesses;
  spec.sandbox.level = process::available_sandbox();
  if (spec.sandbox.level == process::SandboxLevel::kNone && !unsandboxed)
    throw Error(
        "no sandbox is to be had here, so other people's modules are not run; `--unsandboxed` runs them all "
        "the same");
  spec.sandbox.allow_processes = true;
  spec.sandbox.read_only = python_folders(python);
  spec.sandbox.read_only.push_back(script);
  spec.sandbox.read_write = {scratch};
  return spec;
}

}  // namespace warpsmith::python

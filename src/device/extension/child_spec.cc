#include "child_spec.h"

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::device {

namespace {

constexpr std::uint64_t kScratchFileBytes = 256 << 20, kScratchBytes = 1 << 30, kScratchFiles = 10'000;
constexpr std::uint64_t kOpenFiles = 4096;
constexpr int kCompilersProcesses = 64;
constexpr const char* kProgram = "warpsmith-extension";
constexpr const char* kLibrary = "warpsmith-interpreted.so";

fs::path find_ours(const fs::path& chosen, const char* name) {
  if (!chosen.empty()) return chosen;
  const fs::path found = beside_programs(name);
  if (found.empty()) throw Error(std::string(name) + " is missing in " + program_folder().string());
  return found;
}

// Triton wants a C compiler: the system's, which every sandbox shows, else that of $CC with what lies around
// it.
void show_c_compiler(process::ChildSpec& spec) {
  for (const char* path : {"/usr/bin/gcc", "/usr/bin/clang"})
    if (fs::exists(path)) {
      (*spec.environment)["CC"] = path;
      return;
    }
  const char* ours = std::getenv("CC");
  std::error_code error;
  if (ours == nullptr || !fs::path(ours).is_absolute() || !fs::exists(ours, error)) return;
  (*spec.environment)["CC"] = ours;
  for (const fs::path& program : {fs::path(ours), fs::canonical(ours)}) {
    // With its headers and libraries, where it has a place of its own.
    const fs::path folder = program.parent_path(), around = folder.parent_path();
    const char* home = std::getenv("HOME");
    const bool own = folder.filename() == "bin" && around != around.root_path() &&
                     around.parent_path() != around.root_path() && (home == nullptr || around != home);
    spec.sandbox.read_only.push_back(own ? around : folder);
  }
}

// Under one path in both: Triton's cache names its files by their whole paths.
void add_kept(const ExtensionInterpreter& python, process::ChildSpec& spec) {
  const fs::path kept = fs::absolute(python.kept);
  if (python.may_compile) {
    spec.sandbox.read_write.push_back(kept);
    spec.limits.processes = kCompilersProcesses;
    (*spec.environment)["WARPSMITH_MAY_COMPILE"] = "1";
    show_c_compiler(spec);
  } else {
    spec.sandbox.read_only.push_back(kept);
  }
  (*spec.environment)["WARPSMITH_KEPT"] = kept.string();
  (*spec.environment)["TRITON_CACHE_DIR"] = (kept / "triton").string();
}

// With what the child is started, and what more it has to see.
void add_interpreter(const ExtensionInterpreter& python, const fs::path& scratch, process::ChildSpec& spec) {
  const fs::path script = scratch / "candidate.py", library = find_ours(python.library, kLibrary);
  write_file_atomic(script, python.script);
  const fs::path module = python.module.empty() ? fs::path() : scratch / "reference.py";
  if (!module.empty()) write_file_atomic(module, python.module);
  // Numbers of descriptors and the candidate's path are what our own program would be given.
  std::vector<std::string> argv = python.command;
  argv.insert(argv.end(), {"-s", "-B", script.string(), library.string()});
  argv.insert(argv.end(), spec.argv.begin() + 1, spec.argv.begin() + 4);
  const char* closing = spec.sandbox.level == process::SandboxLevel::kNone ? "0"
                        : python.may_compile                               ? "2"
                                                                           : "1";
  argv.insert(argv.end(), {python.device, python.math, closing, module.string()});
  spec.argv = std::move(argv);
  if (!python.kept.empty()) add_kept(python, spec);
  spec.sandbox.read_only.push_back(library);
  spec.sandbox.read_only.insert(spec.sandbox.read_only.end(), python.folders.begin(), python.folders.end());
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"})
    (*spec.environment)[name] = "1";
  (*spec.environment)["PYTHONHASHSEED"] = "0";  // the same dictionaries in both children of a pair
  for (const auto& [name, value] : python.environment) (*spec.environment)[name] = value;
}

std::map<std::string, std::string> child_environment_of(const ExtensionOptions& options,
                                                        const fs::path& scratch) {
  std::string libraries;
  for (const fs::path& folder : options.libraries)
    libraries += (libraries.empty() ? "" : ":") + folder.string();
  if (const char* ours = std::getenv("LD_LIBRARY_PATH"); ours != nullptr && *ours != '\0')
    libraries += (libraries.empty() ? "" : ":") + std::string(ours);
  std::map<std::string, std::string> out = {{"PATH", "/usr/bin:/bin"},
                                            {"LC_ALL", "C"},
                                            {"HOME", scratch.string()},
                                            {"TMPDIR", scratch.string()},
                                            {"CUDA_CACHE_DISABLE", "1"}};
  // python3's own torch finds its own libraries.
  if (!libraries.empty() && !options.interpreter) out["LD_LIBRARY_PATH"] = libraries;
  if (!options.gpu.empty()) out["CUDA_VISIBLE_DEVICES"] = options.gpu;
  return out;
}

}  // namespace

process::ChildSpec extension_child_spec(const ExtensionOptions& options, const fs::path& scratch,
                                        int control_fd, int socket_fd) {
  process::ChildSpec spec;
  const fs::path binary = options.binary.empty() ? fs::path() : fs::absolute(options.binary);
  spec.argv = {options.interpreter ? "" : find_ours(options.program, kProgram).string(),
               std::to_string(control_fd), std::to_string(socket_fd), binary.string()};
  if (options.sandbox == process::SandboxLevel::kNone) spec.argv.emplace_back("--no-seccomp");
  spec.environment = child_environment_of(options, scratch);
  spec.folder = scratch;
  spec.keep_fds = {control_fd, socket_fd};
  if (options.cpu >= 0) spec.cpus = process::cpus_near(options.cpu);  // until it has a context
  spec.limits.tree_memory_bytes = options.host_memory_bytes;
  spec.limits.output_bytes = 4096;
  spec.limits.file_bytes = kScratchFileBytes;
  spec.limits.scratch_bytes = kScratchBytes;
  spec.limits.scratch_files = kScratchFiles;
  spec.limits.open_files = kOpenFiles;
  spec.limits.processes = 0;  // seccomp forbids them
  spec.sandbox.level = options.sandbox;
  spec.sandbox.gpu = true;
  spec.sandbox.read_write = {scratch};
  if (!binary.empty()) spec.sandbox.read_only = {binary};
  spec.sandbox.read_only.insert(spec.sandbox.read_only.end(), options.libraries.begin(),
                                options.libraries.end());
  if (options.interpreter) add_interpreter(*options.interpreter, scratch, spec);
  return spec;
}

}  // namespace warpsmith::device

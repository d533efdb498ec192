#include "host_compiler.h"

#include <unistd.h>

#include <cstdlib>

#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"
#include "warpsmith/toolchain/host.h"

namespace warpsmith::toolchain {

extern const std::string_view kTwinHeader;

namespace {

// CUDA contracts a*b+c by default, so do we. -fno-math-errno and -fno-trapping-math let loops over threads
// vectorise; NaN, infinity and signed zero keep their meaning. -fwhole-program drops what no kernel uses.
// Without start files nothing of the compiler's own runs at load either.
const std::vector<std::string>& fixed_flags() {
  static const std::vector<std::string> flags = {"-std=gnu++20",
                                                 "-O3",
                                                 "-march=native",
                                                 "-ffp-contract=fast",
                                                 "-fno-math-errno",
                                                 "-fno-trapping-math",
                                                 "-fno-exceptions",
                                                 "-fno-rtti",
                                                 "-fno-strict-aliasing",
                                                 "-shared",
                                                 "-fPIC",
                                                 "-fwhole-program",
                                                 "-fvisibility=hidden",
                                                 "-nostdinc",
                                                 "-nostdlib",
                                                 "-fno-stack-protector",
                                                 "-fno-asynchronous-unwind-tables",
                                                 "-fdiagnostics-color=never",
                                                 "-fno-diagnostics-show-caret",
                                                 "-fno-diagnostics-show-option",
                                                 "-fmax-errors=20",
                                                 "-w"};
  return flags;
}

fs::path find_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return fs::exists(name) ? fs::absolute(name) : fs::path();
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/bin:/bin", ':'))
    if (!folder.empty() && ::access((fs::path(folder) / name).c_str(), X_OK) == 0)
      return fs::path(folder) / name;
  return {};
}

struct Compiler {
  fs::path program;
  std::string version;  // first line of --version
};

Compiler find_compiler() {
  std::vector<std::string> names = {"g++", "c++"};
  if (const char* chosen = std::getenv("WARPSMITH_HOST_CXX"); chosen && *chosen) names = {chosen};
  for (const std::string& name : names) {
    const fs::path program = find_in_path(name);
    if (program.empty()) continue;
    process::ChildSpec spec;
    spec.argv = {program.string(), "--version"};
    spec.limits.wall_s = 20;
    const process::ChildResult result = process::run_child(spec);
    if (result.ending != process::Ending::kExited || result.exit_code != 0) continue;
    return {program, result.out.substr(0, result.out.find('\n'))};
  }
  throw Error("no C++ compiler for the CPU twin: install g++, or name one in WARPSMITH_HOST_CXX");
}

const Compiler& compiler() {
  static const Compiler found = find_compiler();
  return found;
}

// The compiler's own prefix, where it is not the system's (conda, modules).
std::vector<fs::path> compiler_folders() {
  const fs::path prefix = fs::canonical(compiler().program).parent_path().parent_path();
  if (prefix == "/usr" || prefix == "/") return {};
  return {prefix};
}

}  // namespace

std::string host_toolchain_id() {
  static const std::string id = [] {
    std::string text = compiler().version;
    for (const std::string& f : fixed_flags()) text += " " + f;
    return text + " header " + sha256_hex(kTwinHeader).substr(0, 16);
  }();
  return id;
}

HostCompilerRun run_host_compiler(const std::string& text, const std::vector<std::string>& options,
                                  const fs::path& scratch, const CompileOptions& limits) {
  process::ChildSpec spec = compiler_spec(scratch, limits);
  spec.argv = {compiler().program.string()};
  spec.argv.insert(spec.argv.end(), fixed_flags().begin(), fixed_flags().end());
  spec.argv.insert(spec.argv.end(), options.begin(), options.end());
  spec.argv.insert(spec.argv.end(), {"-x", "c++", "-", "-o", "kernel.so", "-lgcc"});
  spec.input = text;
  spec.sandbox.allow_processes = true;
  spec.sandbox.read_only = compiler_folders();
  return {run_compiler_child(spec), spec.folder / "kernel.so"};
}

}  // namespace warpsmith::toolchain

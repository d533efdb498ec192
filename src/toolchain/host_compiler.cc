#include "host_compiler.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <mutex>

#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/child.h"

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

bool has(const std::string& text, std::string_view what) { return text.find(what) != std::string::npos; }

}  // namespace

std::string host_toolchain_id() {
  static const std::string id = [] {
    std::string text = compiler().version;
    for (const std::string& f : fixed_flags()) text += " " + f;
    return text + " header " + sha256_hex(kTwinHeader).substr(0, 16);
  }();
  return id;
}

namespace {

constexpr int kTriesWhenKilled = 3;

// SIGKILL comes from outside (the kernel short of memory, a person, a batch system), to the driver, to a
// program that it started, or to the sandbox around them: it says nothing about the source unless it comes
// again and again.
bool was_killed(const process::ChildResult& result) {
  if (result.ending == process::Ending::kSignaled) return result.signal == SIGKILL;
  // The sandbox said nothing and was gone: it was killed while it was being set up. Other failures to start have their cause.
  if (result.ending == process::Ending::kNotStarted) return has(result.problem, "ended before the program began");
  if (result.ending != process::Ending::kExited || result.exit_code == 0) return false;
  return result.exit_code == 128 + SIGKILL || has(result.err, "Killed signal terminated program") ||
         has(result.err, "terminated with signal 9");
}

}  // namespace

CompilerRun run_host_compiler(const std::string& text, const std::vector<std::string>& options,
                              const fs::path& scratch, const CompileOptions& limits) {
  process::ChildSpec spec;
  spec.sandbox.level = process::available_sandbox();
  if (spec.sandbox.level == process::SandboxLevel::kNone && !limits.unsandboxed)
    throw Error(
        "no sandbox is to be had on this machine, and compilers of foreign source want one (--unsandboxed "
        "goes on without)");
  const fs::path folder = fs::absolute(scratch);
  spec.argv = {compiler().program.string()};
  spec.argv.insert(spec.argv.end(), fixed_flags().begin(), fixed_flags().end());
  spec.argv.insert(spec.argv.end(), options.begin(), options.end());
  spec.argv.insert(spec.argv.end(), {"-x", "c++", "-", "-o", "kernel.so", "-lgcc"});
  spec.environment = {{"PATH", std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin"},
                      {"LC_ALL", "C"},
                      {"TMPDIR", folder.string()}};
  spec.folder = folder;
  spec.input = text;
  spec.limits.wall_s = limits.timeout_s;
  spec.limits.cpu_s = limits.timeout_s + 1;
  spec.limits.memory_bytes = limits.memory_bytes;
  spec.limits.file_bytes = 64ull << 20;
  spec.limits.output_bytes = 64 << 10;
  spec.sandbox.allow_processes = true;
  spec.sandbox.seccomp_before_exec = true;
  spec.sandbox.read_only = compiler_folders();
  spec.sandbox.read_write = {folder};
  process::ChildResult result = process::run_child(spec);
  for (int tries = 1; was_killed(result) && tries < kTriesWhenKilled; ++tries)
    result = process::run_child(spec);
  CompilerRun run;
  run.output = result.err;
  if (was_killed(result) && result.ending != process::Ending::kNotStarted) {
    run.outcome = CompilerRun::kOverLimit;
    run.limit = "memory";
    return run;
  }
  switch (result.ending) {
    case process::Ending::kNotStarted:
      throw Error("cannot start the compiler: " + result.problem);
    case process::Ending::kTimedOut:
      run.outcome = CompilerRun::kTimedOut;
      return run;
    case process::Ending::kMemoryLimit:
      run.outcome = CompilerRun::kOverLimit;
      run.limit = "memory";
      return run;
    case process::Ending::kOutputLimit:
      run.outcome = CompilerRun::kOverLimit;
      run.limit = "output";
      return run;
    case process::Ending::kSignaled:
      run.outcome = result.signal == SIGSYS ? CompilerRun::kViolation : CompilerRun::kFailed;
      return run;
    case process::Ending::kStopped:
      throw Error("the compiler was stopped");
    case process::Ending::kExited:
      break;
  }
  if (result.exit_code != 0) {
    if (has(run.output, "memory exhausted") || has(run.output, "out of memory") ||
        has(run.output, "bad_alloc")) {
      run.outcome = CompilerRun::kOverLimit;
      run.limit = "memory";
    } else if (has(run.output, "No space left on device")) {
      throw Error("cannot compile in " + folder.string() + ": No space left on device");
    } else if (has(run.output, "CPU time limit") || has(run.output, "signal terminated program")) {
      run.outcome = CompilerRun::kFailed;
    }
    return run;
  }
  run.outcome = CompilerRun::kDone;
  run.binary = folder / "kernel.so";
  return run;
}

}  // namespace warpsmith::toolchain

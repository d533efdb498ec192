// Compilers of foreign source: programs of this machine, run as sandboxed, limited children, and what their
// end means for the candidate.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "warpsmith/process/child.h"
#include "warpsmith/toolchain/options.h"

namespace warpsmith::toolchain {

// Empty where the variable is not set.
std::string environment(const char* name);

// What the program prints with --version; nothing where it does not start or fails.
std::optional<std::string> ask_version(const std::filesystem::path& program);

// The folder that holds a program's bin/, where it is not the system's (conda, modules); else empty. A
// sandbox has to show it.
std::filesystem::path own_prefix(const std::filesystem::path& program);

// What a compiler of ours prints before it ends by SIGSYS; a system call's number follows.
inline constexpr std::string_view kForbiddenCall = "forbidden system call ";

struct CompilerRun {
  enum Outcome { kDone, kFailed, kTimedOut, kOverLimit, kViolation } outcome = kFailed;
  std::string output;                    // what it printed on stderr
  std::string limit;                     // kOverLimit: of what
  std::filesystem::path binary = {};     // kDone: in the scratch folder, where there is one
  std::filesystem::path optimised = {};  // of the CPU twin: what is there of it besides (twin/optimised.h)
};

// A child in `scratch` under the limits, in the best sandbox here; argv, input and what else it may see are
// the caller's to fill in. Throws Error where no sandbox is to be had.
process::ChildSpec compiler_spec(const std::filesystem::path& scratch, const CompileOptions& limits);

// Runs to the end. Throws Error where the machine is at fault.
CompilerRun run_compiler_child(const process::ChildSpec& spec);

// Throws Error where a compiler says that the disk is full and the folder's is. (What it says alone may be
// the candidate's own words.)
void check_room(std::string_view output, const std::filesystem::path& folder);

// What a run that is not kDone is for the candidate, whose file the log names. `log` is for kFailed.
CompileResult result_of(const CompilerRun& run, const CompileOptions& options, std::string log,
                        const std::string& file = "kernel.cu");
CompileResult failure(Verdict verdict, std::string log);
CompileResult compiled(std::filesystem::path binary);  // ok
CompileResult over_its_limit(Verdict verdict, std::string log);

}  // namespace warpsmith::toolchain

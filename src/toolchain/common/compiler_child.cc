#include "compiler_child.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/process/program_path.h"

namespace warpsmith::toolchain {

namespace {

constexpr int kTriesWhenKilled = 3;
constexpr std::uintmax_t kNoRoom = 16 << 20;

bool has(const std::string& text, std::string_view what) { return text.find(what) != std::string::npos; }

// SIGKILL comes from outside (the kernel short of memory, a person, a batch system), to the driver, to a
// program that it started, or to the sandbox around them: it says nothing about the source unless it comes
// again and again.
bool was_killed(const process::ChildResult& result) {
  if (result.ending == process::Ending::kSignaled) return result.signal == SIGKILL;
  // The sandbox said nothing and was gone: it was killed while it was being set up. Other failures to start
  // have their cause.
  if (result.ending == process::Ending::kNotStarted)
    return has(result.problem, "ended before the program began");
  if (result.ending != process::Ending::kExited || result.exit_code == 0) return false;
  return result.exit_code == 128 + SIGKILL || has(result.err, "Killed signal terminated program") ||
         has(result.err, "terminated with signal 9");
}

// " (system call 41)", where the compiler said so.
std::string forbidden_call(const std::string& output) {
  const std::size_t at = output.rfind(kForbiddenCall);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + kForbiddenCall.size();
  return " (system call " + output.substr(begin, output.find_first_not_of("0123456789", begin) - begin) + ")";
}

CompilerRun over_limit(CompilerRun run, std::string limit) {
  run.outcome = CompilerRun::kOverLimit;
  run.limit = std::move(limit);
  return run;
}

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<std::string> ask_version(const fs::path& program) {
  process::ChildSpec spec;
  spec.argv = {program.string(), "--version"};
  spec.limits.wall_s = 20;
  const process::ChildResult result = process::ask_program(spec);
  if (result.ending != process::Ending::kExited || result.exit_code != 0) return std::nullopt;
  return result.out;
}

fs::path own_prefix(const fs::path& program) {
  const fs::path prefix = fs::canonical(program).parent_path().parent_path();
  return prefix == "/usr" || prefix == "/" ? fs::path() : prefix;
}

process::ChildSpec compiler_spec(const fs::path& scratch, const CompileOptions& limits) {
  process::ChildSpec spec;
  spec.sandbox.level = process::available_sandbox();
  if (spec.sandbox.level == process::SandboxLevel::kNone && !limits.unsandboxed)
    throw Error(
        "no sandbox is to be had on this machine, and compilers of foreign source want one (--unsandboxed "
        "goes on without)");
  spec.folder = fs::absolute(scratch);
  spec.environment = {{"PATH", std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin"},
                      {"LC_ALL", "C"},
                      {"TMPDIR", spec.folder.string()}};
  spec.limits.wall_s = limits.timeout_s;
  spec.limits.cpu_s = limits.timeout_s + 1;
  spec.limits.memory_bytes = limits.memory_bytes;
  spec.limits.file_bytes = 64ull << 20;
  spec.limits.scratch_bytes = 4ull << 30;
  spec.limits.scratch_files = 100'000;
  spec.limits.open_files = 4096;
  spec.limits.output_bytes = 64 << 10;
  spec.sandbox.seccomp_before_exec = true;
  spec.sandbox.read_write = {spec.folder};
  return spec;
}

CompilerRun run_compiler_child(const process::ChildSpec& spec) {
  process::ChildResult result = process::run_child(spec);
  for (int tries = 1; was_killed(result) && tries < kTriesWhenKilled; ++tries)
    result = process::run_child(spec);
  CompilerRun run;
  run.output = result.err;
  if (was_killed(result) && result.ending != process::Ending::kNotStarted) return over_limit(run, "memory");
  switch (result.ending) {
    case process::Ending::kNotStarted:
      throw Error("cannot start the compiler: " + result.problem);
    case process::Ending::kTimedOut:
      run.outcome = CompilerRun::kTimedOut;
      return run;
    case process::Ending::kMemoryLimit:
      return over_limit(run, "memory");
    case process::Ending::kOutputLimit:
      return over_limit(run, result.problem.empty() ? "output" : "files");
    case process::Ending::kSignaled:
      run.outcome = result.signal == SIGSYS ? CompilerRun::kViolation : CompilerRun::kFailed;
      return run;
    case process::Ending::kStopped:
      throw Error("the compiler was stopped");
    case process::Ending::kExited:
      break;
  }
  if (result.exit_code == 0) {
    run.outcome = CompilerRun::kDone;
    return run;
  }
  // The last: the compiler's stack could not grow, and it had none to say so.
  if (has(run.output, "memory exhausted") || has(run.output, "out of memory") ||
      has(run.output, "bad_alloc") || has(run.output, "Segmentation fault signal terminated program"))
    return over_limit(run, "memory");
  check_room(run.output, spec.folder);
  return run;
}

void check_room(std::string_view output, const fs::path& folder) {
  if (output.find("No space left on device") == std::string_view::npos) return;
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < kNoRoom)
    throw Error("cannot compile in " + folder.string() + ": No space left on device", kExitEnvironment,
                ENOSPC);
}

CompileResult failure(Verdict verdict, std::string log) {
  CompileResult result;
  result.verdict = verdict;
  result.log = std::move(log);
  return result;
}

CompileResult compiled(fs::path binary) {
  CompileResult result;
  result.verdict = Verdict::kOk;
  result.binary = std::move(binary);
  return result;
}

CompileResult over_its_limit(Verdict verdict, std::string log) {
  CompileResult result = failure(verdict, std::move(log));
  result.over_limit = true;
  return result;
}

CompileResult result_of(const CompilerRun& run, const CompileOptions& options, std::string log,
                        const std::string& file) {
  switch (run.outcome) {
    case CompilerRun::kTimedOut:
      return over_its_limit(
          Verdict::kCompileTimeout,
          file + ": the compiler took over " + std::to_string(static_cast<int>(options.timeout_s)) + " s\n");
    case CompilerRun::kViolation:
      return failure(Verdict::kSandboxViolation,
                     file + ": the compiler was made to do what the sandbox forbids" +
                         forbidden_call(run.output) + "\n");
    case CompilerRun::kOverLimit:
      return over_its_limit(Verdict::kCompileError,
                            file + ": error: the compiler ran over its limit of " + run.limit + "\n");
    case CompilerRun::kFailed:
    case CompilerRun::kDone:
      break;
  }
  return failure(Verdict::kCompileError, std::move(log));
}

}  // namespace warpsmith::toolchain

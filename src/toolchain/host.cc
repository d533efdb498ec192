#include "warpsmith/toolchain/host.h"

#include <chrono>

#include "compile_cache.h"
#include "compile_unit.h"
#include "compiler_log.h"
#include "elf_check.h"
#include "host_compiler.h"
#include "module_table.h"
#include "rewrite.h"
#include "scan.h"
#include "warpsmith/base/files.h"

namespace warpsmith::toolchain {

extern const std::string_view kTwinHeader;  // twin_abi.h and cuda_twin.h, made by CMake

namespace {

// What the compiler is given, and how to read its answer.
struct Unit {
  std::string text;
  Rewritten rewritten;
};

Unit make_unit(const std::string& source, const ModuleNames& names, bool split) {
  CleanSource clean;
  read_tokens(source, &clean);
  refuse_constructs(clean);
  const Scan scan = scan_source(clean);
  Unit unit;
  unit.rewritten = rewrite(clean, scan, split);
  const std::string table = module_table(scan, clean, unit.rewritten, names);
  unit.text.reserve(kTwinHeader.size() + unit.rewritten.text.size() + table.size() + 64);
  unit.text += kTwinHeader;
  unit.text += "\n#line 1 \"kernel.cu\"\n" + unit.rewritten.text + "\n#line 1 \"plan\"\n" + table;
  return unit;
}

CompileResult run_compiler(const Candidate& candidate, const Unit& unit, const CompileOptions& options,
                           const Scratch& scratch, const fs::path& binary) {
  const HostCompilerRun run =
      run_host_compiler(unit.text, read_options(candidate).defines, scratch.path(), options);
  if (run.outcome != CompilerRun::kDone)
    return result_of(run, options, readable_log(run.output, unit.rewritten, options.log_bytes));
  const std::string problem = problem_of_shared_object(run.binary);
  if (!problem.empty()) return failure(Verdict::kCompileError, "kernel.cu: error: " + problem + "\n");
  publish(run.binary, binary);
  CompileResult result;
  result.verdict = Verdict::kOk;
  result.binary = binary;
  return result;
}

CompileResult compile_uncached(const Candidate& candidate, const ModuleNames& names,
                               const CompileOptions& options, const Scratch& scratch,
                               const fs::path& binary) {
  try {
    const Unit unit = make_unit(candidate.source(), names, true);
    CompileResult result = run_compiler(candidate, unit, options, scratch, binary);
    // What splitting made of the source may be at fault; if not, the errors of the other form are nearer to
    // what was written.
    if (result.verdict == Verdict::kCompileError && !unit.rewritten.split.empty())
      result = run_compiler(candidate, make_unit(candidate.source(), names, false), options, scratch, binary);
    return result;
  } catch (const SourceProblem& p) {
    return failure(p.unsupported ? Verdict::kUnsupported : Verdict::kCompileError, place_of(p));
  }
}

}  // namespace

CompileResult compile_for_host(const Candidate& candidate, const task::Task& task,
                               const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  if (candidate.tier != Tier::kPlan)
    return failure(Verdict::kUnsupported, "only candidates of tier `plan` run on the CPU twin\n");
  CompileResult result;
  const std::optional<ModuleNames> names = read_plan_names(candidate, task, options, &result);
  if (!names) return result;
  make_folders(options.cache);
  const CacheEntry entry(options.cache, start_key(host_toolchain_id(), candidate, task, *names).hex(), ".so");
  if (!entry.read(&result)) {
    const Scratch scratch(options.cache);
    result = compile_uncached(candidate, *names, options, scratch, entry.binary());
    if (result.verdict != Verdict::kCompileTimeout) entry.write(scratch.path(), result, nullptr);
  }
  result.seconds = seconds();
  return result;
}

}  // namespace warpsmith::toolchain

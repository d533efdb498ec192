#include "warpsmith/toolchain/host.h"

#include <optional>

#include "../common/compile_unit.h"
#include "../common/pipeline.h"
#include "../nvrtc/check.h"
#include "../nvrtc/compiler.h"
#include "compiler_log.h"
#include "elf_check.h"
#include "host_compiler.h"
#include "module_table.h"
#include "optimised.h"
#include "rewrite.h"
#include "scan.h"
#include "warpsmith/base/files.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::toolchain {

extern const std::string_view kTwinHeader;  // twin_abi.h and cuda_twin.h, made by CMake

namespace {

// What the compiler is given, and how to read its answer.
struct Unit {
  std::string text;
  Rewritten rewritten;
};

// Where a problem is in a text with `lines` lines of options in front.
SourceProblem without_options(SourceProblem problem, int lines) {
  problem.line -= lines;
  if (problem.line < 1) return {1, 1, "an option -D: " + problem.message, problem.unsupported};
  return problem;
}

// The plan's names go into what is compiled, and so may hold no more than the source.
void refuse_in_names(const ModuleNames& names) {
  for (const auto* list : {&names.kernels, &names.symbols})
    for (const std::string& name : *list) {
      try {
        CleanSource clean;
        read_tokens(name, &clean);
        refuse_constructs(clean);
      } catch (const SourceProblem& p) {
        const task::NamePlace place = names.place_of(name);
        throw SourceProblem{place.line, place.column + p.column - 1, p.message, p.unsupported};
      }
    }
}

Rewritten rewrite_behind_options(const CleanSource& clean, const Scan& scan, int lines,
                                 std::string* options) {
  Rewritten rewritten = rewrite(clean, scan);
  std::size_t begin = 0;
  for (int i = 0; i < lines; ++i) begin = rewritten.text.find('\n', begin) + 1;
  *options = rewritten.text.substr(0, begin);
  rewritten.text.erase(0, begin);
  std::map<int, std::vector<Insertion>> insertions;
  for (auto& [line, list] : rewritten.insertions) insertions[line - lines] = std::move(list);
  rewritten.insertions = std::move(insertions);
  return rewritten;
}

// The candidate's options stand in front of its text as directives: behind our header, which they are not to
// change, and looked at as its own are.
Unit make_unit(const Candidate& candidate, const ModuleNames& names) {
  const std::vector<std::string> defines = read_options(candidate).defines;
  const int lines = static_cast<int>(defines.size());
  std::string_view source = candidate.source();
  if (source.starts_with(kByteOrderMark)) source.remove_prefix(kByteOrderMark.size());
  CleanSource clean;
  Scan scan;
  Unit unit;
  std::string options;
  try {
    read_tokens(define_lines(defines) + std::string(source), &clean);
    refuse_constructs(clean);
    scan = scan_source(clean);
    unit.rewritten = rewrite_behind_options(clean, scan, lines, &options);
  } catch (const SourceProblem& p) {
    throw without_options(p, lines);
  }
  refuse_in_names(names);
  const std::string table = module_table(scan, clean, names);
  unit.text.reserve(kTwinHeader.size() + options.size() + unit.rewritten.text.size() + table.size() + 128);
  unit.text += kTwinHeader;
  unit.text += "\n#line 1 \"options\"\n" + options + "\n#line 1 \"kernel.cu\"\n" + unit.rewritten.text +
               "\n#line 1 \"plan\"\n" + table;
  return unit;
}

// What is kept beside a binary. A dump that cannot be read says nothing.
Json facts_of(const CompilerRun& run) {
  constexpr std::uintmax_t kLongest = 64u << 20;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(run.optimised, error);
  return {{"code", error || size > kLongest ? "" : structure_of_optimised(read_file(run.optimised))}};
}

CompileResult run_compiler(const Unit& unit, const CompileOptions& options, const fs::path& scratch,
                           Json& facts) {
  const CompilerRun run = run_host_compiler(unit.text, scratch, options);
  if (run.outcome != CompilerRun::kDone)
    return result_of(run, options, readable_log(run.output, unit.rewritten, options.log_bytes));
  const std::string problem = problem_of_shared_object(run.binary);
  if (!problem.empty()) return failure(Verdict::kCompileError, "kernel.cu: error: " + problem + "\n");
  facts = facts_of(run);
  return compiled(run.binary);
}

// What g++ makes of a candidate that NVRTC takes. `assembler`: NVRTC's has yet to be asked.
CompileResult compile_what_nvrtc_takes(const Candidate& candidate, const task::Task& task,
                                       const CompileOptions& options, const fs::path& scratch,
                                       const CompileResult& of_twin, bool assembler) {
  const bool by_gxx = of_twin.verdict == Verdict::kCompileError;
  if (of_twin.over_limit || !(assembler || by_gxx || of_twin.verdict == Verdict::kUnsupported))
    return of_twin;
  CompileOptions apart = options;
  apart.cache = scratch / "nvrtc";
  const CompileResult of_gpu = compile_for_gpu(candidate, task, {8, 0, 0}, apart);
  if (of_gpu.over_limit) return of_twin;
  if (of_gpu.verdict == Verdict::kCompileError) return of_gpu;
  if (of_gpu.verdict != Verdict::kOk || !by_gxx) return of_twin;
  return failure(
      Verdict::kUnsupported,
      cut_log("kernel.cu: error: NVRTC compiles this, the CPU twin's compiler does not:\n" + of_twin.log,
              options.log_bytes));
}

}  // namespace

struct HostToolchain::State {
  CompileOptions options;
  NvrtcCheck nvrtc;

  explicit State(const CompileOptions& o) : options(o), nvrtc(o) {}
  CompileResult compile(const Candidate& candidate, const task::Task& task, const ModuleNames& names,
                        const fs::path& scratch, Json& facts);
};

// g++ takes what no CUDA compiler takes (its own extensions, calls that are ambiguous in CUDA), and now and
// then refuses what CUDA takes. Where NVRTC is, it decides what is right, and g++ whether the twin runs it.
CompileResult HostToolchain::State::compile(const Candidate& candidate, const task::Task& task,
                                            const ModuleNames& names, const fs::path& scratch, Json& facts) {
  std::optional<Unit> unit;
  CompileResult result;
  try {
    unit = make_unit(candidate, names);
  } catch (const SourceProblem& p) {
    if (!p.unsupported) throw;
    result = failure_of(p);
  }
  const bool has_nvrtc = nvrtc_problem().empty();
  NvrtcWord word;
  try {
    if (has_nvrtc) word = nvrtc.ask(candidate, names);
    if (word.kind == NvrtcWord::kRefuses) return word.refusal;
    if (unit) result = run_compiler(*unit, options, scratch, facts);
  } catch (const SourceProblem& p) {
    result = failure_of(p);
  }
  if (word.kind == NvrtcWord::kTakes)
    result = compile_what_nvrtc_takes(candidate, task, options, scratch, result, word.wants_assembler);
  // A quieter machine may say otherwise.
  if (has_nvrtc && word.kind == NvrtcWord::kNothing && result.verdict == Verdict::kOk)
    result.over_limit = true;
  return result;
}

HostToolchain::HostToolchain(const CompileOptions& options) : state_(std::make_unique<State>(options)) {}
HostToolchain::~HostToolchain() = default;
HostToolchain::HostToolchain(HostToolchain&&) noexcept = default;
HostToolchain& HostToolchain::operator=(HostToolchain&&) noexcept = default;

CompileResult HostToolchain::compile(const Candidate& candidate, const task::Task& task) {
  const CompileOptions& options = state_->options;
  ModuleNames names;
  const auto refuse = [&] { return read_plan_names(candidate, task, options, &names); };
  const auto key = [&](const std::string&) {
    return start_key(host_toolchain_id(), candidate, task, names).hex();
  };
  const auto compile = [&](const fs::path& scratch, std::vector<Output>& outputs) {
    outputs.front().result = state_->compile(candidate, task, names, scratch, outputs.front().facts);
  };
  const Language twin = {
      Tier::kPlan, "only candidates of tier `plan` run on the CPU twin\n", ".so", refuse, key, compile};
  return compile_candidate(twin, candidate, {""}, options).front();
}

CompileResult compile_for_host(const Candidate& candidate, const task::Task& task,
                               const CompileOptions& options) {
  return HostToolchain(options).compile(candidate, task);
}

}  // namespace warpsmith::toolchain

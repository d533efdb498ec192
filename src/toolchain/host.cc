#include "warpsmith/toolchain/host.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>

#include "compiler_log.h"
#include "elf_check.h"
#include "host_compiler.h"
#include "module_table.h"
#include "rewrite.h"
#include "scan.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/task/launch_plan.h"

namespace warpsmith::toolchain {

extern const std::string_view kTwinHeader;  // twin_abi.h and cuda_twin.h, made by CMake

namespace {

std::string place_of(const SourceProblem& p) {
  return "kernel.cu:" + std::to_string(p.line) + ":" + std::to_string(p.column) + ": error: " + p.message +
         "\n";
}

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

// -D options, as NVRTC takes them; what only steers a GPU's code is passed over.
std::vector<std::string> compiler_options(const Candidate& candidate) {
  std::vector<std::string> out;
  for (const std::string& o : candidate.options) {
    if (o == "--use_fast_math" || o == "-use_fast_math" || o.rfind("--std=", 0) == 0 ||
        o.rfind("-std=", 0) == 0 || o == "-lineinfo")
      continue;
    bool plain = o.size() > 2 && o.rfind("-D", 0) == 0;
    for (const char c : o)
      plain = plain &&
              (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '=' || c == '-' || c == '.');
    if (!plain || o.find("wstw") != std::string::npos)
      throw SourceProblem{1, 1, "unknown compile option " + o, false};
    out.push_back(o);
  }
  return out;
}

std::string key_of(const Candidate& candidate, const task::Task& task, const ModuleNames& names) {
  Sha256 key;
  key.field(host_toolchain_id()).field(task.id).field(task.digest).field(candidate.source());
  for (const std::string& o : candidate.options) key.field("option").field(o);
  for (const std::string& k : names.kernels) key.field("kernel").field(k);
  for (const std::string& s : names.symbols) key.field("symbol").field(s);
  return key.hex();
}

// A cached answer, if it is whole.
bool read_entry(const fs::path& cache, const std::string& key, CompileResult* result) {
  const fs::path entry = cache / (key + ".json");
  std::error_code error;
  if (!fs::exists(entry, error)) return false;
  try {
    const Json json = read_json_file(entry);
    const auto verdict = parse_verdict(json_at<std::string>(json, "verdict", "compile cache"));
    if (!verdict) return false;
    result->verdict = *verdict;
    result->log = json_at<std::string>(json, "log", "compile cache");
    if (*verdict == Verdict::kOk) {
      result->binary = cache / (key + ".so");
      if (sha256_file_hex(result->binary) != json_at<std::string>(json, "binary_sha256", "compile cache"))
        return false;
    }
  } catch (const Error&) {
    return false;  // damaged: compiled again
  }
  result->cached = true;
  return true;
}

// A folder of our own in the cache; gone with everything in it at the end.
class Scratch {
 public:
  explicit Scratch(const fs::path& cache) {
    static std::atomic<unsigned> count{0};
    path_ = cache / (".scratch-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    make_folders(path_);
  }
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Moves a file into the cache in one step. Two writers of one entry write the same.
void publish(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw system_error("cannot write " + to.string(), error.value());
}

// The answer is written last: it makes the entry whole.
void write_entry(const Scratch& scratch, const fs::path& cache, const std::string& key,
                 const CompileResult& result) {
  Json json = {{"verdict", std::string(to_string(result.verdict))}, {"log", result.log}};
  if (result.verdict == Verdict::kOk) json["binary_sha256"] = sha256_file_hex(result.binary);
  write_file_atomic(scratch.path() / "entry.json",
                    json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  publish(scratch.path() / "entry.json", cache / (key + ".json"));
}

CompileResult failure(Verdict verdict, std::string log) {
  CompileResult result;
  result.verdict = verdict;
  result.log = std::move(log);
  return result;
}

CompileResult run_compiler(const Candidate& candidate, const Unit& unit, const CompileOptions& options,
                           const Scratch& scratch, const fs::path& binary) {
  CompilerRun run = run_host_compiler(unit.text, compiler_options(candidate), scratch.path(), options);
  switch (run.outcome) {
    case CompilerRun::kTimedOut:
      return failure(Verdict::kCompileTimeout, "kernel.cu: the compiler took over " +
                                                   std::to_string(static_cast<int>(options.timeout_s)) +
                                                   " s\n");
    case CompilerRun::kViolation:
      return failure(Verdict::kSandboxViolation,
                     "kernel.cu: the compiler was made to do what the sandbox forbids\n");
    case CompilerRun::kOverLimit:
      return failure(Verdict::kCompileError,
                     "kernel.cu: error: the compiler ran over its limit of " + run.limit + "\n");
    case CompilerRun::kFailed:
      return failure(Verdict::kCompileError, readable_log(run.output, unit.rewritten, options.log_bytes));
    case CompilerRun::kDone:
      break;
  }
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
  Diagnostics diagnostics;
  const task::LaunchPlan plan = task::LaunchPlan::parse(candidate.source(), task, "kernel.cu", diagnostics);
  if (!diagnostics.empty()) {
    std::string log;
    for (const Diagnostic& d : diagnostics) log += to_string(d) + "\n";
    log.resize(std::min<std::size_t>(log.size(), options.log_bytes));
    return failure(Verdict::kCompileError, log);
  }
  const ModuleNames names{plan.kernels(), plan.symbols()};
  make_folders(options.cache);
  const std::string key = key_of(candidate, task, names);
  CompileResult result;
  if (read_entry(options.cache, key, &result)) {
    result.seconds = seconds();
    return result;
  }
  const Scratch scratch(options.cache);
  result = compile_uncached(candidate, names, options, scratch, options.cache / (key + ".so"));
  if (result.verdict != Verdict::kCompileTimeout) write_entry(scratch, options.cache, key, result);
  result.seconds = seconds();
  return result;
}

}  // namespace warpsmith::toolchain

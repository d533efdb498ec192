#include <algorithm>
#include <chrono>
#include <set>

#include "../common/compile_cache.h"
#include "../common/compile_unit.h"
#include "../common/object_code.h"
#include "../common/source_path.h"
#include "../nvcc/log.h"
#include "../nvrtc/log.h"
#include "here.h"
#include "sandbox.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/child.h"
#include "warpsmith/task/hosted_files.h"
#include "warpsmith/toolchain/python.h"

namespace warpsmith::toolchain {

namespace {

constexpr const char* kSchema = "warpsmith.python/1";
constexpr std::size_t kMostExtensions = 64;

// A result, and whether it says something of the candidate alone.
struct Made {
  CompileResult result;
  std::vector<std::string> libraries;
  bool keep = true;
  CodeFacts code = {};
};

bool is_source(std::string_view path) { return path.ends_with(".py") || task::is_native_source(path); }

std::string first_path(const Candidate& candidate) {
  const bool plain = !candidate.files.empty() && is_plain_path(candidate.files.front().path);
  return plain ? candidate.files.front().path : "model.py";
}

// "model.py:1:1: error: …": what is wrong with the names and sizes; empty where nothing is.
std::string problem_of_files(const Candidate& candidate) {
  const auto problem = [](const std::string& path, const std::string& words) {
    return path + ":1:1: error: " + words + "\n";
  };
  const std::string first = first_path(candidate);
  if (candidate.files.empty()) return problem(first, "a candidate without files");
  std::set<std::string> paths;
  std::size_t bytes = 0;
  for (const SourceFile& file : candidate.files) {
    if (!is_plain_path(file.path) || file.path.starts_with("warpsmith") || !is_source(file.path))
      return problem(first, "`" + shown_path(file.path) + "` is no name of a source file here");
    paths.insert(file.path);
    bytes += file.content.size();
  }
  if (candidate.files.size() > kMostFiles || paths.size() != candidate.files.size() || bytes > kMostBytes)
    return problem(first, "at most 32 files of different names and 1 MiB");
  if (const std::string path = file_and_folder(paths); !path.empty())
    return problem(path, "a file cannot be the folder of another one");
  if (!first.ends_with(".py")) return problem(first, "the first file is the module: <name>.py");
  if (!candidate.options.empty())
    return problem(first,
                   "compile options are no part of a module, which names those of its extensions itself");
  return "";
}

std::vector<std::string> names_for_log(const Candidate& candidate) {
  std::vector<std::string> names;
  for (const SourceFile& file : candidate.files) names.push_back(file.path);
  // What torch makes of sources that are text; lines whose place in the module is known bear its name.
  names.insert(names.end(), {"cuda.cu", "main.cpp"});
  return names;
}

CompileResult result_of_its_end(const std::string& path) {
  return failure(Verdict::kCompileError,
                 path + ": error: python3 ended while the module was imported, or it was made to end\n");
}

// Of what was not said by a compiler or by Python.
CompileResult result_of_end(const PythonRun& run, const std::string& path) {
  const std::string seconds = std::to_string(static_cast<int>(run.limit_s));
  switch (run.outcome) {
    case CompilerRun::kTimedOut:
      return over_its_limit(
          Verdict::kCompileTimeout,
          path + ": importing the module and building its extensions took over " + seconds + " s\n");
    case CompilerRun::kViolation:
      return failure(Verdict::kSandboxViolation, path + ": the module does what the sandbox forbids\n");
    case CompilerRun::kOverLimit:
      return over_its_limit(
          Verdict::kCompileError,
          path + ": error: the module or a compiler ran over its limit of " + run.limit + "\n");
    case CompilerRun::kFailed:
    case CompilerRun::kDone:
      break;
  }
  return result_of_its_end(path);
}

bool is_key(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The report is made by a process in which the candidate has run: it is believed nothing but its form.
struct BuildReport {
  std::string outcome, log, compiler_log;
  Json extensions = Json::object();
  std::vector<std::string> libraries;
};

std::optional<BuildReport> read_report(const Json& json) {
  BuildReport report;
  try {
    report.outcome = json.at("outcome").get<std::string>();
    if (report.outcome == "timeout") return report;
    report.log = json.at("log").get<std::string>();
    report.compiler_log = json.at("compiler_log").get<std::string>();
    report.libraries = json.at("libraries").get<std::vector<std::string>>();
    report.extensions = json.at("extensions");
    for (const auto& [key, name] : report.extensions.items())
      if (!is_key(key) || !is_identifier(name.get<std::string>())) return std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  if (!report.extensions.is_object() || report.extensions.size() > kMostExtensions) return std::nullopt;
  for (std::string& name : report.libraries)
    if (!is_plain_path(name)) return std::nullopt;
  return report;
}

CompileResult result_of_mistake(const BuildReport& report, const Candidate& candidate,
                                const CompileOptions& options) {
  if (report.compiler_log.empty())
    return failure(Verdict::kCompileError, cut_log(report.log, options.log_bytes));
  const bool lacks = target_lacks_features(report.compiler_log);
  return failure(lacks ? Verdict::kUnsupported : Verdict::kCompileError,
                 readable_nvcc_log(report.compiler_log, names_for_log(candidate), options.log_bytes));
}

CodeFacts code_of(const BuildReport& report, const GpuTarget& target, const fs::path& folder) {
  ObjectCode code;
  for (const auto& [key, name] : report.extensions.items()) {
    const fs::path path = folder / (key + ".so");
    if (fs::exists(path))
      add_object(read_file(path), target, &code);
    else
      code.whole = false;
  }
  return facts_of(code, "");
}

Made compile_uncached(const Candidate& candidate, const GpuTarget& target, const CompileOptions& options,
                      const PythonLimits& least, const PythonFolders& folders) {
  const std::string path = first_path(candidate);
  write_python_sources(candidate, folders);
  try_python(target, folders, options, least);
  const PythonRun run = build_python(candidate, target, folders, options, least);
  check_room(run.output, folders.ours);
  if (run.outcome != CompilerRun::kDone || !run.report) return {result_of_end(run, path), {}, true};
  const std::optional<BuildReport> report = read_report(*run.report);
  if (!report) return {result_of_end(run, path), {}, true};
  if (report->outcome == "timeout")
    return {over_its_limit(Verdict::kCompileTimeout,
                           path + ": importing the module, without what it builds, took too long\n"),
            {},
            true};
  // These say that this machine is at fault, and we know ourselves whether it is: what is missing here, and
  // that python3 and torch have started before.
  if (report->outcome == "unsupported" && !python_here().extension.empty())
    return {failure(Verdict::kUnsupported, python_here().extension + "\n"), {}, false};
  if (report->outcome == "unsupported" || report->outcome == "broken")
    return {result_of_its_end(path), {}, true};
  if (report->outcome != "ok") return {result_of_mistake(*report, candidate, options), {}, true};
  const Json index = {{"schema", kSchema}, {"module", path}, {"extensions", report->extensions}};
  if (const std::string refused = pack_python(candidate, index, folders, options); !refused.empty())
    return {failure(Verdict::kCompileError, path + ": error: " + refused + "\n"), {}, true};
  CompileResult result;
  result.verdict = Verdict::kOk;
  result.log = cut_log(report->log, options.log_bytes);
  result.binary = folders.ours / "candidate.zip";
  return {result, report->libraries, true, code_of(*report, target, folders.ours)};
}

}  // namespace

std::string python_toolchain_lacks() { return python_here().problem; }

std::string python_toolchain_id() {
  const PythonHere here = python_here();
  if (!here.problem.empty()) throw Error(here.problem);
  return "python " + here.version + " torch " + here.torch + " " + extension_compilers() + " ours " +
         digest_of_python_script();
}

CompileResult compile_python(const Candidate& candidate, const task::Task& task, const GpuTarget& target,
                             const CompileOptions& options, const PythonLimits& least) {
  const auto start = std::chrono::steady_clock::now();
  const auto timed = [&](CompileResult result) {
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  };
  if (candidate.tier != Tier::kPython)
    return failure(Verdict::kUnsupported, "modules alone are candidates of tier `python`\n");
  const PythonHere here = python_here();
  if (!here.problem.empty()) return failure(Verdict::kUnsupported, here.problem + "\n");
  if (const process::SandboxLevel level = process::available_sandbox();
      level != process::SandboxLevel::kNone && !process::keeps_signals_inside(level))
    return failure(
        Verdict::kUnsupported,
        "modules may start compilers, and no sandbox here keeps a module's processes from ending others: "
        "that wants bubblewrap, or a kernel of Landlock 6 (Linux 6.12)\n");
  for (const task::TensorSpec& input : task.inputs)
    if (!input.strides.empty())
      return failure(
          Verdict::kUnsupported,
          "input `" + input.name + "` has strides, and the tensors of tier `python` are contiguous\n");
  if (const std::string problem = problem_of_files(candidate); !problem.empty())
    return timed(failure(Verdict::kCompileError, problem));
  make_folders(options.cache);
  Sha256 key = start_key(python_toolchain_id(), candidate, task, {});
  for (const SourceFile& file : candidate.files) key.field(file.path).field(file.content);
  const CacheEntry entry(options.cache, key.field("python").field(to_string(target)).hex(), ".zip");
  CompileResult result;
  if (entry.read(&result)) return timed(result);
  const Scratch ours(options.cache), theirs(options.cache);
  Made made = compile_uncached(candidate, target, options, least, {ours.path(), theirs.path()});
  result = std::move(made.result);
  Json facts;
  if (result.verdict == Verdict::kOk) {
    publish(result.binary, entry.binary());
    result.binary = entry.binary();
    facts = {{"target", to_string(target)},
             {"nvcc", extension_compilers() + ", torch " + here.torch},
             {"libraries", made.libraries},
             {"code", to_json(made.code)}};
  }
  if (made.keep && !result.over_limit) entry.write(ours.path(), result, facts);
  return timed(result);
}

}  // namespace warpsmith::toolchain

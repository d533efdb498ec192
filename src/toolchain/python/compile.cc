#include "../common/compile_cache.h"
#include "../common/compile_unit.h"
#include "../common/cuda_log.h"
#include "../common/hosted.h"
#include "../common/object_code.h"
#include "../common/pipeline.h"
#include "../common/source_path.h"
#include "../nvcc/log.h"
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

bool is_source(std::string_view path) { return path.ends_with(".py") || task::is_native_source(path); }

std::string first_path(const Candidate& candidate) {
  const bool plain = !candidate.files.empty() && is_plain_path(candidate.files.front().path);
  return plain ? candidate.files.front().path : "model.py";
}

// What is wrong with the files, before any of them runs.
std::optional<FileProblem> problem_of(const Candidate& candidate) {
  const std::string first = first_path(candidate);
  std::optional<FileProblem> problem = problem_of_files(candidate, is_source, first);
  if (problem) return problem;
  if (!first.ends_with(".py"))
    return FileProblem{first, {1, 1, "the first file is the module: <name>.py", false}};
  if (!candidate.options.empty())
    return FileProblem{
        first,
        {1, 1, "compile options are no part of a module, which names those of its extensions itself", false}};
  return std::nullopt;
}

std::vector<std::string> names_for_log(const Candidate& candidate) {
  std::vector<std::string> names = paths_of(candidate);
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

// Of a report that is not "ok".
CompileResult result_of_mistake(const BuildReport& report, const Candidate& candidate,
                                const CompileOptions& options) {
  const std::string path = first_path(candidate);
  if (report.outcome == "timeout")
    return over_its_limit(Verdict::kCompileTimeout,
                          path + ": importing the module, without what it builds, took too long\n");
  if (report.outcome == "unsupported" || report.outcome == "broken") return result_of_its_end(path);
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

std::optional<CompileResult> refuse_module(const Candidate& candidate, const task::Task& task) {
  if (const std::string problem = python_here().problem; !problem.empty())
    return failure(Verdict::kUnsupported, problem + "\n");
  if (const process::SandboxLevel level = process::available_sandbox();
      level != process::SandboxLevel::kNone && !process::keeps_signals_inside(level))
    return failure(
        Verdict::kUnsupported,
        "modules may start compilers, and no sandbox here keeps a module's processes from ending others: "
        "that wants bubblewrap, or a kernel of Landlock 6 (Linux 6.12)\n");
  if (std::optional<CompileResult> refused = refuse_strides(task, candidate.tier)) return refused;
  if (const std::optional<FileProblem> p = problem_of(candidate)) return failure_of(p->problem, p->path);
  return std::nullopt;
}

// Packs what the module has built.
void pack(const Candidate& candidate, const BuildReport& report, const GpuTarget& target,
          const CompileOptions& options, const PythonFolders& folders, Output& output) {
  const std::string path = first_path(candidate);
  const Json index = {{"schema", kSchema}, {"module", path}, {"extensions", report.extensions}};
  if (const std::string refused = pack_python(candidate, index, folders, options); !refused.empty()) {
    output.result = failure(Verdict::kCompileError, path + ": error: " + refused + "\n");
    return;
  }
  output.result = compiled(folders.ours / "candidate.zip");
  output.result.log = cut_log(report.log, options.log_bytes);
  output.facts =
      to_json(ExtensionFacts{output.target, extension_compilers() + ", torch " + python_here().torch,
                             report.libraries, code_of(report, target, folders.ours)});
}

void compile_module(const Candidate& candidate, const task::Task& task, const GpuTarget& target,
                    const CompileOptions& options, const PythonLimits& least, const PythonFolders& folders,
                    Output& output) {
  write_python_sources(candidate, task.module, folders);
  try_python(target, folders, options, least);
  const PythonRun run = build_python(candidate, task, target, folders, options, least);
  check_room(run.output, folders.ours);
  const std::optional<BuildReport> report = run.report ? read_report(*run.report) : std::nullopt;
  if (!report) {
    output.result = result_of_end(run, first_path(candidate));
  } else if (report->outcome == "ok") {
    pack(candidate, *report, target, options, folders, output);
  } else if (report->outcome == "unsupported" && !python_here().extension.empty()) {
    // The report alone could be the candidate's own words. What is missing may be there at the next run.
    output.result = failure(Verdict::kUnsupported, python_here().extension + "\n");
    output.repeatable = false;
  } else {
    output.result = result_of_mistake(*report, candidate, options);
  }
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
  const auto refuse = [&] { return refuse_module(candidate, task); };
  const auto key = [&](const std::string& name) {
    const std::string inputs = task.module.empty() ? forward_inputs(task).dump() : "";
    return hosted_key(python_toolchain_id() + inputs, candidate, task, name);
  };
  const auto compile = [&](const fs::path& ours, std::vector<Output>& outputs) {
    const Scratch theirs(options.cache);
    compile_module(candidate, task, target, options, least, {ours, theirs.path()}, outputs.front());
  };
  const Language python = {
      Tier::kPython, "modules alone are candidates of tier `python`\n", ".zip", refuse, key, compile};
  return compile_candidate(python, candidate, {to_string(target)}, options).front();
}

}  // namespace warpsmith::toolchain

#include <chrono>

#include "../common/compile_cache.h"
#include "../common/compile_unit.h"
#include "../common/object_code.h"
#include "../nvrtc/log.h"
#include "log.h"
#include "nvcc.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/toolchain/extension.h"

namespace warpsmith::toolchain {

namespace {

constexpr const char* kStandard = "-std=c++17";  // half a second less than c++20

// What nvcc has of NVRTC's options.
std::vector<std::string> options_of(const Candidate& candidate) {
  const CandidateOptions own = read_options(candidate);
  std::vector<std::string> options = own.defines;
  bool has_standard = false;
  for (const std::string& o : own.device) {
    if (o.ends_with("device-int128")) continue;
    has_standard = has_standard || o.find("-std=") != std::string::npos;
    if (o.ends_with("c++11") || o.ends_with("c++14"))
      throw SourceProblem{1, 1, o + ": the headers here are C++17", false};
    options.push_back(o);
  }
  if (!has_standard) options.emplace_back(kStandard);
  return options;
}

std::vector<std::string> paths_of(const Candidate& candidate) {
  std::vector<std::string> paths;
  for (const SourceFile& file : candidate.files) paths.push_back(file.path);
  return paths;
}

std::string place_in(const std::string& path, const SourceProblem& p) {
  return path + ":" + std::to_string(p.line) + ":" + std::to_string(p.column) + ": error: " + p.message +
         "\n";
}

std::string missing_library(const ExtensionSources& sources) {
  for (const std::string& name : sources.libraries)
    if (!nvcc_here().libraries.contains(name)) return name;
  return "";
}

Json facts_json(const ExtensionSources& sources, const GpuTarget& target, const CodeFacts& code) {
  return {{"target", to_string(target)},
          {"nvcc", nvcc_here().version},
          {"libraries", std::vector<std::string>(sources.libraries.begin(), sources.libraries.end())},
          {"code", to_json(code)}};
}

// The words that other tiers share speak of the one file that they have.
std::string about(const std::string& path, std::string log) {
  constexpr std::string_view kOther = "kernel.cu:";
  if (log.starts_with(kOther)) log.replace(0, kOther.size(), path + ":");
  return log;
}

CodeFacts code_of(const NvccRun& run, const GpuTarget& target) {
  ObjectCode code;
  add_object(read_file(run.binary), target, &code);
  return facts_of(code, run.output);
}

CompileResult compile_uncached(const Candidate& candidate, const ExtensionSources& sources,
                               const std::vector<std::string>& options, const GpuTarget& target,
                               const CompileOptions& limits, const Scratch& scratch, CodeFacts* code) {
  write_sources(sources, scratch.path());
  const NvccRun run = run_nvcc(sources, options, target, scratch.path(), limits);
  if (run.outcome == CompilerRun::kDone) {
    CompileResult result;
    result.verdict = Verdict::kOk;
    result.binary = run.binary;
    *code = code_of(run, target);
    return result;
  }
  const std::string log = readable_nvcc_log(run.output, paths_of(candidate), limits.log_bytes);
  if (run.outcome == CompilerRun::kFailed && target_lacks_features(run.output))
    return failure(Verdict::kUnsupported, log);
  CompileResult result = result_of(run, limits, log);
  if (run.outcome != CompilerRun::kFailed)
    result.log = about(candidate.files.front().path, std::move(result.log));
  return result;
}

}  // namespace

std::string extension_toolchain_lacks() { return nvcc_here().problem; }

std::string extension_toolchain_id() {
  const NvccHere& here = nvcc_here();
  if (!here.problem.empty()) throw Error(here.problem);
  std::string id = "nvcc " + here.version + " " + here.host_version + " " + kStandard;
  for (const std::string& o : nvcc_options()) id += " " + o;
  return id + " ours " + digest_of_our_headers();
}

CompileResult compile_extension(const Candidate& candidate, const task::Task& task, const GpuTarget& target,
                                const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto timed = [&](CompileResult result) {
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  };
  if (candidate.tier != Tier::kExtension)
    return failure(Verdict::kUnsupported, "nvcc compiles candidates of tier `extension` alone\n");
  if (const std::string lacks = extension_toolchain_lacks(); !lacks.empty())
    return failure(Verdict::kUnsupported, lacks + "\n");
  for (const task::TensorSpec& input : task.inputs)
    if (!input.strides.empty())
      return failure(
          Verdict::kUnsupported,
          "input `" + input.name + "` has strides, and the tensors of tier `extension` are contiguous\n");
  ExtensionSources sources;
  std::vector<std::string> own;
  try {
    sources = read_extension(candidate);
    own = options_of(candidate);
  } catch (const ExtensionProblem& p) {
    return timed(failure(p.problem.unsupported ? Verdict::kUnsupported : Verdict::kCompileError,
                         place_in(p.path, p.problem)));
  } catch (const SourceProblem& p) {
    return timed(failure(Verdict::kCompileError, place_in(candidate.files.front().path, p)));
  }
  if (const std::string name = missing_library(sources); !name.empty())
    return failure(Verdict::kUnsupported, "lib" + name + " is not here, neither with nvcc nor with torch\n");
  make_folders(options.cache);
  Sha256 key = start_key(extension_toolchain_id(), candidate, task, {});
  for (const SourceFile& file : candidate.files) key.field(file.path).field(file.content);
  const CacheEntry entry(options.cache, key.field("extension").field(to_string(target)).hex(), ".so");
  CompileResult result;
  if (entry.read(&result)) return timed(result);
  const Scratch scratch(options.cache);
  CodeFacts code;
  result = compile_uncached(candidate, sources, own, target, options, scratch, &code);
  Json facts;
  if (result.verdict == Verdict::kOk) {
    publish(result.binary, entry.binary());
    result.binary = entry.binary();
    facts = facts_json(sources, target, code);
  }
  if (!result.over_limit) entry.write(scratch.path(), result, facts);
  return timed(result);
}

ExtensionFacts read_extension_facts(const fs::path& binary) {
  fs::path answer = binary;
  const Json json = read_cached_facts(answer.replace_extension(".json"));
  try {
    return {json_at<std::string>(json, "target", "facts"), json_at<std::string>(json, "nvcc", "facts"),
            json_at<std::vector<std::string>>(json, "libraries", "facts"),
            code_facts_from_json(json.value("code", Json::object()))};
  } catch (const Error& e) {
    throw e.with_context("while reading " + answer.string());
  }
}

}  // namespace warpsmith::toolchain

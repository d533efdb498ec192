#include "../common/compile_unit.h"
#include "../common/cuda_log.h"
#include "../common/hosted.h"
#include "../common/object_code.h"
#include "../common/pipeline.h"
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

std::string missing_library(const ExtensionSources& sources) {
  for (const std::string& name : sources.libraries)
    if (!nvcc_here().libraries.contains(name)) return name;
  return "";
}

ExtensionFacts extension_facts(const CompilerRun& run, const ExtensionSources& sources,
                               const GpuTarget& target) {
  ObjectCode code;
  add_object(read_file(run.binary), target, &code);
  return {to_string(target),
          nvcc_here().version,
          {sources.libraries.begin(), sources.libraries.end()},
          facts_of(code, run.output)};
}

// What nvcc is given.
struct Input {
  ExtensionSources sources;
  std::vector<std::string> options;
};

std::optional<CompileResult> read_input(const Candidate& candidate, const task::Task& task, Input* input) {
  if (const std::string lacks = extension_toolchain_lacks(); !lacks.empty())
    return failure(Verdict::kUnsupported, lacks + "\n");
  if (std::optional<CompileResult> refused = refuse_strides(task, candidate.tier)) return refused;
  try {
    *input = {read_extension(candidate), options_of(candidate)};
  } catch (const ExtensionProblem& p) {
    return failure_of(p.problem, p.path);
  } catch (const SourceProblem& p) {
    return failure_of(p, candidate.files.front().path);
  }
  if (const std::string name = missing_library(input->sources); !name.empty())
    return failure(Verdict::kUnsupported, "lib" + name + " is not here, neither with nvcc nor with torch\n");
  return std::nullopt;
}

CompileResult result_of_end(const CompilerRun& run, const Candidate& candidate,
                            const CompileOptions& limits) {
  if (run.outcome == CompilerRun::kDone) return compiled(run.binary);
  const std::string log = readable_nvcc_log(run.output, paths_of(candidate), limits.log_bytes);
  if (run.outcome == CompilerRun::kFailed && target_lacks_features(run.output))
    return failure(Verdict::kUnsupported, log);
  return result_of(run, limits, log, candidate.files.front().path);
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
  Input input;
  const auto refuse = [&] { return read_input(candidate, task, &input); };
  const auto key = [&](const std::string& name) {
    return hosted_key(extension_toolchain_id(), candidate, task, name);
  };
  const auto compile = [&](const fs::path& scratch, std::vector<Output>& outputs) {
    Output& output = outputs.front();
    write_sources(input.sources, scratch);
    const CompilerRun run = run_nvcc(input.sources, input.options, target, scratch, options);
    output.result = result_of_end(run, candidate, options);
    if (output.result.verdict == Verdict::kOk)
      output.facts = to_json(extension_facts(run, input.sources, target));
  };
  const Language nvcc = {
      Tier::kExtension, "nvcc compiles candidates of tier `extension` alone\n", ".so", refuse, key, compile};
  return compile_candidate(nvcc, candidate, {to_string(target)}, options).front();
}

}  // namespace warpsmith::toolchain

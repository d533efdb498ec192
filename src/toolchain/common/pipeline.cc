#include "pipeline.h"

#include <algorithm>
#include <chrono>

#include "compile_cache.h"
#include "compile_unit.h"
#include "compiler_child.h"
#include "warpsmith/base/files.h"

namespace warpsmith::toolchain {

namespace {

bool is_cached(const Output& output) { return output.result.cached; }

void compile_outputs(const Language& language, const fs::path& scratch, std::vector<Output>& outputs) {
  try {
    language.compile(scratch, outputs);
  } catch (const SourceProblem& p) {
    for (Output& output : outputs)
      if (!is_cached(output)) output.result = failure_of(p);
  }
}

void publish_output(const CacheEntry& entry, const fs::path& scratch, Output& output) {
  CompileResult& result = output.result;
  if (result.verdict == Verdict::kOk) {
    publish(result.binary, entry.binary());
    result.binary = entry.binary();
  }
  if (output.repeatable && !result.over_limit) entry.write(scratch, result, output.facts);
}

}  // namespace

std::vector<CompileResult> compile_candidate(const Language& language, const Candidate& candidate,
                                             const std::vector<std::string>& targets,
                                             const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto timed = [&](CompileResult result) {
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  };
  if (candidate.tier != language.tier)
    return std::vector(targets.size(), timed(failure(Verdict::kUnsupported, language.other_tier)));
  if (std::optional<CompileResult> refused = language.refuse())
    return std::vector(targets.size(), timed(std::move(*refused)));
  make_folders(options.cache);
  std::vector<CacheEntry> entries;
  std::vector<Output> outputs;
  for (const std::string& target : targets) {
    entries.emplace_back(options.cache, language.key(target), language.suffix);
    outputs.push_back({target, timed(entries.back().read().value_or(CompileResult()))});
  }
  if (!std::all_of(outputs.begin(), outputs.end(), is_cached)) {
    const Scratch scratch(options.cache);
    compile_outputs(language, scratch.path(), outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (is_cached(outputs[i])) continue;
      publish_output(entries[i], scratch.path(), outputs[i]);
      outputs[i].result = timed(std::move(outputs[i].result));
    }
  }
  std::vector<CompileResult> results;
  for (Output& output : outputs) results.push_back(std::move(output.result));
  return results;
}

}  // namespace warpsmith::toolchain

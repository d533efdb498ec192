// The way from a candidate to its binaries, whatever its language: checks, cache, compilers in a scratch
// folder, publishing. A language is a folder of src/toolchain whose compile.cc fills in a Language.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/toolchain/options.h"

namespace warpsmith::toolchain {

// One binary of a candidate, or why there is none.
struct Output {
  std::string target;      // "sm_90a"; empty: this CPU
  CompileResult result;    // `cached`: it was in the cache, and is not compiled
  Json facts = nullptr;    // of an ok result: what is kept beside the binary
  bool repeatable = true;  // false: another run may give another result, so it is not kept
};

// What a language has for itself. The functions are called in this order.
struct Language {
  Tier tier;
  std::string other_tier;  // said of candidates of any other tier
  std::string suffix;      // of its binaries: ".so"
  // Looks at the candidate before a compiler does. A result says why it is not compiled here; it is not kept.
  std::function<std::optional<CompileResult>()> refuse;
  // Cache key of the binary for a target: a digest of source, options and compilers.
  std::function<std::string(const std::string& target)> key;
  // Compiles in `scratch`, a new folder, and fills in those outputs that are not cached; the binary of an ok
  // result lies in `scratch`. A SourceProblem that it throws is the result of all of them.
  std::function<void(const std::filesystem::path& scratch, std::vector<Output>& outputs)> compile;
};

// Results in the order of `targets`. Throws Error where this machine is at fault.
std::vector<CompileResult> compile_candidate(const Language& language, const Candidate& candidate,
                                             const std::vector<std::string>& targets,
                                             const CompileOptions& options);

}  // namespace warpsmith::toolchain

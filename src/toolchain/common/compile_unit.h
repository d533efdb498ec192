// What a candidate asks of any compiler: its plan's names, its options, and where its mistakes are told.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tokens.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/task/launch_plan.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/options.h"

namespace warpsmith::toolchain {

// Names of the source that the launch plan uses.
struct ModuleNames {
  std::vector<std::string> kernels;  // name expressions
  std::vector<std::string> symbols;
  std::map<std::string, task::NamePlace> places = {};  // of these in the plan
  task::NamePlace place_of(const std::string& name) const;
};

// The plan's mistakes; nothing where it has none.
std::optional<CompileResult> read_plan_names(const Candidate& candidate, const task::Task& task,
                                             const CompileOptions& options, ModuleNames* names);

struct CandidateOptions {
  std::vector<std::string> defines;  // "-DTILE=32"
  std::vector<std::string> device;   // what steers a GPU's code alone; the twin passes them over
};
// Throws SourceProblem on what is not known.
CandidateOptions read_options(const Candidate& candidate);
// Such options as directives, a line each: "#define TILE 32\n".
std::string define_lines(const std::vector<std::string>& defines);

// Digest of toolchain, task, source, options and names: the front of every cache key.
Sha256 start_key(const std::string& toolchain_id, const Candidate& candidate, const task::Task& task,
                 const ModuleNames& names);

// "kernel.cu:12:3: error: …\n"
std::string place_of(const SourceProblem& problem, const std::string& file = "kernel.cu");
CompileResult failure_of(const SourceProblem& problem, const std::string& file = "kernel.cu");

// `text` in at most `limit` bytes, never cut inside a character.
std::string cut_log(std::string text, std::size_t limit);

}  // namespace warpsmith::toolchain

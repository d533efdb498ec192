// What tiers `extension` and `python` share: candidates of several files with host code, compiled for one GPU
// target at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokens.h"
#include "warpsmith/base/json.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/extension.h"

namespace warpsmith::toolchain {

// A problem, and in which file.
struct FileProblem {
  std::string path;
  SourceProblem problem;
};

// Names, number and sizes of the files. `fallback`: stands for a file without a proper name in the message.
std::optional<FileProblem> problem_of_files(const Candidate& candidate, bool (*is_source)(std::string_view),
                                            const std::string& fallback);
// `unsupported` where an input of the task has strides.
std::optional<CompileResult> refuse_strides(const task::Task& task, Tier tier);

std::string hosted_key(const std::string& toolchain_id, const Candidate& candidate, const task::Task& task,
                       const std::string& target);

std::vector<std::string> paths_of(const Candidate& candidate);

// As read_extension_facts() reads it.
Json to_json(const ExtensionFacts& facts);

}  // namespace warpsmith::toolchain

#include "hosted.h"

#include <set>

#include "compile_cache.h"
#include "compile_unit.h"
#include "compiler_child.h"
#include "source_path.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::size_t kMostFiles = 32;
constexpr std::size_t kMostBytes = 1 << 20;

// One of the paths that would have to be a folder too, for another lies in it; empty where there is none.
std::string file_and_folder(const std::set<std::string>& paths) {
  for (const std::string& path : paths)
    if (const auto in = paths.lower_bound(path + "/"); in != paths.end() && in->starts_with(path + "/"))
      return path;
  return "";
}

// A path as a message shows it.
std::string shown_path(const std::string& path) {
  return path.size() <= kLongestPart ? path : path.substr(0, kLongestPart) + "…";
}

}  // namespace

std::optional<FileProblem> problem_of_files(const Candidate& candidate, bool (*is_source)(std::string_view),
                                            const std::string& fallback) {
  const auto problem = [](const std::string& path, std::string message) {
    return FileProblem{path, {1, 1, std::move(message), false}};
  };
  if (candidate.files.empty()) return problem(fallback, "a candidate without files");
  std::set<std::string> paths;
  std::size_t bytes = 0;
  for (const SourceFile& file : candidate.files) {
    if (!is_plain_path(file.path) || file.path.starts_with("warpsmith") || !is_source(file.path))
      return problem(fallback, "`" + shown_path(file.path) + "` is no name of a source file here");
    paths.insert(file.path);
    bytes += file.content.size();
  }
  if (candidate.files.size() > kMostFiles || paths.size() != candidate.files.size() || bytes > kMostBytes)
    return problem(candidate.files.front().path, "at most 32 files of different names and 1 MiB");
  if (const std::string path = file_and_folder(paths); !path.empty())
    return problem(path, "a file cannot be the folder of another one");
  return std::nullopt;
}

std::optional<CompileResult> refuse_strides(const task::Task& task, Tier tier) {
  for (const task::TensorSpec& input : task.inputs)
    if (!input.strides.empty())
      return failure(Verdict::kUnsupported, "input `" + input.name +
                                                "` has strides, and the tensors of tier `" +
                                                std::string(to_string(tier)) + "` are contiguous\n");
  return std::nullopt;
}

std::string hosted_key(const std::string& toolchain_id, const Candidate& candidate, const task::Task& task,
                       const std::string& target) {
  Sha256 key = start_key(toolchain_id, candidate, task, {});
  for (const SourceFile& file : candidate.files) key.field(file.path).field(file.content);
  if (candidate.tier == Tier::kPython && !task.module.empty()) key.field(task.module);
  return key.field(to_string(candidate.tier)).field(target).hex();
}

std::vector<std::string> paths_of(const Candidate& candidate) {
  std::vector<std::string> paths;
  for (const SourceFile& file : candidate.files) paths.push_back(file.path);
  return paths;
}

Json to_json(const ExtensionFacts& facts) {
  return {{"target", facts.target},
          {"nvcc", facts.nvcc},
          {"libraries", facts.libraries},
          {"code", to_json(facts.code)}};
}

ExtensionFacts read_extension_facts(const fs::path& binary) {
  return read_cached_facts(binary, [](const Json& json) -> ExtensionFacts {
    return {json_at<std::string>(json, "target", "facts"), json_at<std::string>(json, "nvcc", "facts"),
            json_at<std::vector<std::string>>(json, "libraries", "facts"),
            code_facts_from_json(json.value("code", Json::object()))};
  });
}

}  // namespace warpsmith::toolchain

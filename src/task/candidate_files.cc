#include <algorithm>
#include <cstdio>

#include "candidate_folders.h"
#include "warpsmith/base/text.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/task/task.h"

namespace warpsmith::task {

namespace {

// Verdicts that a candidate in a dataset may be made to get, and `wrong_hidden`.
const std::vector<std::string> kExpected = {"ok",
                                            "compile_error",
                                            "wrong_output",
                                            "wrong_hidden",
                                            "unsupported",
                                            "launch_error",
                                            "crash",
                                            "timeout",
                                            "nondeterministic",
                                            "out_of_bounds",
                                            "out_of_memory",
                                            "input_modified",
                                            "compile_timeout",
                                            "sandbox_violation",
                                            "hack",
                                            "too_fast"};

constexpr std::uint64_t kMostBytes = 1 << 20;  // of a file, as of all files of the other tiers together

// A candidate's id is taken of its bytes, and records are JSON: what is no text in UTF-8 would come back
// altered.
bool is_utf8(const std::string& source, const std::filesystem::path& path, Diagnostics& diagnostics) {
  const std::size_t bad = first_not_utf8(source);
  if (bad == source.size()) return true;
  const std::string_view before = std::string_view(source).substr(0, bad);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto column = bad - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  char byte[8];
  std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned char>(source[bad]));
  diagnostics.push_back({path.string(), static_cast<int>(line), static_cast<int>(column),
                         "byte " + std::string(byte) + " is not UTF-8", "save the file as UTF-8"});
  return false;
}

void load_file(const std::filesystem::path& path, const std::string& expected, Diagnostics& diagnostics,
               std::vector<CandidateFile>& files) {
  if (path.extension() != ".cu") {
    diagnostics.push_back({path.string(), 0, 0, "a candidate's file ends in .cu", ""});
    return;
  }
  std::optional<std::string> source = read_source(path, diagnostics);
  if (source && is_utf8(*source, path, diagnostics))
    files.push_back({path.stem().string(), expected, path, std::move(*source)});
}

}  // namespace

std::vector<std::filesystem::path> sorted_names(const std::filesystem::path& folder,
                                                Diagnostics& diagnostics) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (!it->path().filename().string().starts_with(".")) paths.push_back(it->path());
  if (error) diagnostics.push_back({folder.string(), 0, 0, "cannot list the folder: " + error.message(), ""});
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::optional<std::string> read_source(const std::filesystem::path& path, Diagnostics& diagnostics) {
  try {
    return read_file_within(path, kMostBytes);
  } catch (const Error& error) {
    diagnostics.push_back({path.string(), 0, 0, error.what(), ""});
    return std::nullopt;
  }
}

std::vector<std::pair<std::string, std::filesystem::path>> folders_by_verdict(
    const std::filesystem::path& root, Diagnostics& diagnostics) {
  std::vector<std::pair<std::string, std::filesystem::path>> folders;
  std::error_code ignored;
  if (!std::filesystem::exists(root, ignored)) return folders;
  for (const std::filesystem::path& folder : sorted_names(root, diagnostics)) {
    const std::string expected = folder.filename().string();
    if (std::find(kExpected.begin(), kExpected.end(), expected) != kExpected.end()) {
      folders.emplace_back(expected, folder);
      continue;
    }
    const auto nearest = nearest_word(expected, kExpected);
    diagnostics.push_back({folder.string(), 0, 0,
                           "`" + expected + "` is no verdict that a candidate can be expected to get",
                           nearest ? "did you mean `" + *nearest + "`?" : ""});
  }
  return folders;
}

std::vector<CandidateFile> load_candidate_files(const Task& task, Diagnostics& diagnostics) {
  std::vector<CandidateFile> files;
  for (const auto& [expected, folder] : folders_by_verdict(task.folder / "candidates", diagnostics))
    for (const std::filesystem::path& path : sorted_names(folder, diagnostics))
      load_file(path, expected, diagnostics, files);
  return files;
}

std::vector<CandidateFile> load_template_files(const Task& task, Diagnostics& diagnostics) {
  std::vector<CandidateFile> files;
  const std::filesystem::path folder = task.folder / "templates";
  std::error_code ignored;
  if (!std::filesystem::exists(folder, ignored)) return files;
  for (const std::filesystem::path& path : sorted_names(folder, diagnostics))
    load_file(path, "ok", diagnostics, files);
  return files;
}

}  // namespace warpsmith::task

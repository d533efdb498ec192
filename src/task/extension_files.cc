#include "warpsmith/task/extension_files.h"

#include <algorithm>

#include "candidate_folders.h"

namespace warpsmith::task {

namespace fs = std::filesystem;

namespace {

// What nvcc's job may be given, and how deep a folder may be.
const std::vector<std::string> kEndings = {".cu", ".cuh", ".cpp", ".cc", ".cxx", ".h", ".hpp"};
constexpr int kDeepest = 4;

void load_below(const fs::path& folder, const std::string& inside, int depth, ExtensionSource& to,
                Diagnostics& diagnostics) {
  for (const fs::path& path : sorted_names(folder, diagnostics)) {
    const std::string name = inside + path.filename().string();
    if (fs::is_directory(path)) {
      if (depth == kDeepest)
        diagnostics.push_back({path.string(), 0, 0, "folders in folders, too deep", ""});
      else
        load_below(path, name + "/", depth + 1, to, diagnostics);
      continue;
    }
    if (std::find(kEndings.begin(), kEndings.end(), path.extension()) == kEndings.end()) {
      diagnostics.push_back(
          {path.string(), 0, 0, "a file of C++ or CUDA ends in .cu, .cpp, .cuh, .h or the like", ""});
      continue;
    }
    if (std::optional<std::string> content = read_source(path, diagnostics))
      to.files.push_back({name, std::move(*content)});
  }
}

}  // namespace

std::vector<ExtensionSource> load_extension_sources(const Task& task, Diagnostics& diagnostics) {
  std::vector<ExtensionSource> sources;
  for (const auto& [expected, folder] : folders_by_verdict(task.folder / "extension", diagnostics)) {
    for (const fs::path& path : sorted_names(folder, diagnostics)) {
      const std::size_t before = diagnostics.size();
      ExtensionSource source{path.stem().string(), expected, path, {}};
      if (fs::is_directory(path)) {
        load_below(path, "", 1, source, diagnostics);
        if (source.files.empty() && diagnostics.size() == before)
          diagnostics.push_back({path.string(), 0, 0, "the folder holds no file", ""});
      } else if (path.extension() != ".cu") {
        diagnostics.push_back(
            {path.string(), 0, 0, "a candidate of one file ends in .cu; several lie in a folder", ""});
      } else if (std::optional<std::string> content = read_source(path, diagnostics)) {
        source.files.push_back({"kernel.cu", std::move(*content)});
      }
      if (diagnostics.size() == before) sources.push_back(std::move(source));
    }
  }
  return sources;
}

}  // namespace warpsmith::task

// Candidates with host code in a dataset. Of tier `extension`: below <task>/extension/<expected>/, each a
// file <name>.cu or a folder <name>/ of files of C++ and CUDA. Of tier `python`: below
// <task>/python/<expected>/, each a file <name>.py or a folder <name>/ that holds model.py and more. They are
// measured on GPUs, by `warpsmith validate --measure --device`; no model learns from them, as models write
// launch plans.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/task/task.h"

namespace warpsmith::task {

enum class HostedTier { kExtension, kPython };

struct HostedFile {
  std::string path;  // in the candidate: "kernel.cu", "parts/reduce.cuh"; "model.py"
  std::string content;
};

struct HostedSource {
  HostedTier tier = HostedTier::kExtension;
  std::string name;      // of the file without its ending, or of the folder
  std::string expected;  // folder name, as of a CandidateFile
  std::filesystem::path path;
  std::vector<HostedFile> files;  // sorted by path, model.py first; at least one
};

// C++ and CUDA, by its ending.
bool is_native_source(std::string_view path);

// The candidate at `path`, which may lie anywhere: a file <name>.py or a folder with a model.py is of tier
// `python`, a file <name>.cu or another folder of tier `extension`. `expected` is "ok".
std::optional<HostedSource> load_hosted_source(const std::filesystem::path& path, Diagnostics& diagnostics);
// Those of one tier, sorted by `expected`, then name. Mistakes go to `diagnostics`. Where only
// `compile_error` is expected a model.py may define nothing. Files of Python are UTF-8, or say in a `#
// coding:` line what else they are.
std::vector<HostedSource> load_hosted_sources(const Task& task, HostedTier tier, Diagnostics& diagnostics);
// Those of tier `extension`, then those of tier `python`.
std::vector<HostedSource> load_hosted_sources(const Task& task, Diagnostics& diagnostics);

}  // namespace warpsmith::task

// Candidates with host code in a dataset. Of tier `extension`: below <task>/extension/<expected>/, each a
// file <name>.cu or a folder <name>/ of files of C++ and CUDA. Of tier `python`: below
// <task>/python/<expected>/, each a file <name>.py or a folder <name>/ that holds model.py and more. They are
// measured on GPUs, by `warpsmith validate --measure --device` and where a workflow's models write such
// programs.
//
// Kernels of others lie below <task>/imported/, each a file <name>.py or <name>.cu, of any tier and verdict.
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
  std::string expected;  // folder name, as of a CandidateFile; empty: imported, and nothing is expected
  std::filesystem::path path;
  std::vector<HostedFile> files;  // sorted by path, model.py first; at least one
};

// C++ and CUDA, by its ending.
bool is_native_source(std::string_view path);

// Whether it is one file that says a launch plan, in comments: then the candidate is of tier `plan`.
bool has_plan(const HostedSource& source);

// The folder of a task that holds what was imported, and the file there that says of each where it is from.
inline constexpr const char* kImportedFolder = "imported";
inline constexpr const char* kImportedOrigin = "origin.json";

// The candidate at `path`, which may lie anywhere: a file <name>.py or a folder with a model.py is of tier
// `python`, a file <name>.cu or another folder of tier `extension`. `expected` is "ok".
std::optional<HostedSource> load_hosted_source(const std::filesystem::path& path, Diagnostics& diagnostics);
// Those of one tier, sorted by `expected`, then name. Mistakes go to `diagnostics`. Where only
// `compile_error` is expected a model.py may define nothing. Files of Python are UTF-8, or say in a `#
// coding:` line what else they are.
std::vector<HostedSource> load_hosted_sources(const Task& task, HostedTier tier, Diagnostics& diagnostics);
// One file below imported/. It need not define anything: what cannot run gets its verdict.
std::optional<HostedSource> load_imported_source(const std::filesystem::path& path, Diagnostics& diagnostics);
// All of a task's, sorted by the files' names.
std::vector<HostedSource> load_imported_sources(const std::filesystem::path& task_folder,
                                                Diagnostics& diagnostics);
// Those of tier `extension`, then those of tier `python`.
std::vector<HostedSource> load_hosted_sources(const Task& task, Diagnostics& diagnostics);

}  // namespace warpsmith::task

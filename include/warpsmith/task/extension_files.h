// Candidates of tier `extension` in a dataset: below <task>/extension/<expected>/, each a file <name>.cu or a
// folder <name>/ of files of C++ and CUDA. They are measured on GPUs, by `warpsmith validate --measure
// --device`; no model learns from them, as models write launch plans.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/task/task.h"

namespace warpsmith::task {

struct ExtensionFile {
  std::string path;  // in the candidate: "kernel.cu", "parts/reduce.cuh"
  std::string content;
};

struct ExtensionSource {
  std::string name;      // of the file without .cu, or of the folder
  std::string expected;  // folder name, as of a CandidateFile
  std::filesystem::path path;
  std::vector<ExtensionFile> files;  // sorted by path; at least one
};

// Sorted by `expected`, then name. Mistakes go to `diagnostics`.
std::vector<ExtensionSource> load_extension_sources(const Task& task, Diagnostics& diagnostics);

}  // namespace warpsmith::task

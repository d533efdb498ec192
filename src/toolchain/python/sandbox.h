// The two sandboxed children of a compilation of tier `python`: one that runs the candidate's module, and one
// that packs what it left.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "../common/compiler_child.h"
#include "here.h"
#include "warpsmith/base/json.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/gpu.h"
#include "warpsmith/toolchain/python.h"

namespace warpsmith::toolchain {

// Two folders: what the candidate can write is never written, nor followed, by a process without sandbox.
struct PythonFolders {
  std::filesystem::path ours;    // our script, our orders, the sources, candidate.zip
  std::filesystem::path theirs;  // the sources again, what is built
};

// Our script, the task's module (empty: it is none), and the sources in both folders.
void write_python_sources(const Candidate& candidate, const std::string& task_module,
                          const PythonFolders& folders);
// Digest of our script.
std::string digest_of_python_script();

// Starts python3 and torch, without a candidate, in the sandbox of build_python(): once a process, where it
// works. Throws Error with what it says where it does not, for that is no fault of a candidate's.
void try_python(const GpuTarget& target, const PythonFolders& folders, const CompileOptions& options,
                const PythonLimits& least);

struct PythonRun : CompilerRun {
  double limit_s = 0;
  std::optional<Json> report;  // kDone: what src/toolchain/python/compile.py prints; nothing where it is none
};
PythonRun build_python(const Candidate& candidate, const task::Task& task, const GpuTarget& target,
                       const PythonFolders& folders, const CompileOptions& options,
                       const PythonLimits& least);

// What forward() gets at the task's first timing shape, tensors as {"dtype", "shape"}, then numbers: what is
// built in it may hang on them.
Json forward_inputs(const task::Task& task);

// Makes candidate.zip in `folders.ours`, and beside it lie the shared objects in it as <key>.so, but for very
// large ones; `index`: what index.json is to hold. Empty, or what is wrong with
// what the module has built. Throws Error where something else went wrong: no foreign code runs.
std::string pack_python(const Candidate& candidate, const Json& index, const PythonFolders& folders,
                        const CompileOptions& options);

}  // namespace warpsmith::toolchain

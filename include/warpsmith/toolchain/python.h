// `python` candidates for NVIDIA GPUs: a module with `class ModelNew` or a function `forward`, as KernelBench
// has them. What it builds by torch's load() and load_inline() is built here, by running the module in a
// sandboxed, killable python3 with a content-addressed cache; where it is measured nothing is built. No GPU
// and no driver is needed; python3 with torch is, and for extensions nvcc, a host compiler and ninja.
#pragma once

#include <string>

#include "warpsmith/records/candidate.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/gpu.h"
#include "warpsmith/toolchain/options.h"

namespace warpsmith::toolchain {

// Empty where candidates of the tier can be compiled here; else why not ("there is no python3 here"). Plain
// torch and Triton are meant: what extensions want besides is told when a candidate asks for one.
std::string python_toolchain_lacks();

// At least so long, whatever CompileOptions say.
struct PythonLimits {
  double whole_s = 300;  // one source file with torch's headers takes nvcc up to a minute where it is slow
  double own_s = 60;     // of these the module's own, without builds: importing, making ModelNew
};

// As compile_extension (extension.h), `binary` being <cache>/<key>.zip, whose facts read_extension_facts()
// reads:
//   source/<the candidate's files>
//   extensions/<key>.so   by extension_key() (warpsmith/python/scripts.h)
//   index.json            {"schema": "warpsmith.python/1", "module": path of the first file, below source/,
//                          "extensions": {key: name of the module}}
// Extensions that are only asked for when `forward` is called are not in it. A module that cannot go on for
// want of a GPU is taken as far as it came: the log of such an `ok` says so.
CompileResult compile_python(const Candidate& candidate, const task::Task& task, const GpuTarget& target,
                             const CompileOptions& options, const PythonLimits& least = {});

// python3, torch, nvcc, host compiler, their versions and our scripts as they enter the cache key; for
// provenance. Throws Error where there is no python3 with torch.
std::string python_toolchain_id();

}  // namespace warpsmith::toolchain

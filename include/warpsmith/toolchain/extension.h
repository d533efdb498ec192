// `extension` candidates for NVIDIA GPUs: C++ and CUDA files with a host function `forward` over tensors,
// made into a shared object by nvcc, a sandboxed, killable child with a content-addressed cache. No GPU, no
// driver and no torch is needed; what stands in for torch's headers is ours. What a candidate may be made of:
// datasets/candidates.md.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "warpsmith/records/candidate.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/gpu.h"
#include "warpsmith/toolchain/options.h"

namespace warpsmith::toolchain {

struct ExtensionFacts {
  std::string target;                  // "sm_90a"
  std::string nvcc;                    // version: "13.0.88"
  std::vector<std::string> libraries;  // that it is linked with: "cublas", "cublasLt", "cudnn"
  CodeFacts code;  // of a module (python.h): of the extensions that were built, without spills
};

// Empty where candidates of the tier can be compiled here; else why not ("there is no nvcc here: …").
std::string extension_toolchain_lacks();

// As compile_for_gpu (gpu.h), `binary` being <cache>/<key>.so. `unsupported`, and not cached, where
// extension_toolchain_lacks() or a library that the candidate wants is not here.
CompileResult compile_extension(const Candidate& candidate, const task::Task& task, const GpuTarget& target,
                                const CompileOptions& options);

// What was recorded when the shared object was made. Throws Error naming the file where it is missing or
// damaged.
ExtensionFacts read_extension_facts(const std::filesystem::path& binary);

// nvcc, host compiler, their versions and options as they enter the cache key; for provenance. Throws Error
// where there is none.
std::string extension_toolchain_id();

}  // namespace warpsmith::toolchain

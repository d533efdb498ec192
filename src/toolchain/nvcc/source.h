// What of a candidate of tier `extension` is looked at before any compiler sees it. Includes alone: what its
// code does is the business of the child that it runs in.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "../common/hosted.h"
#include "warpsmith/records/candidate.h"

namespace warpsmith::toolchain {

struct ExtensionSources {
  std::vector<SourceFile> files;    // as the compiler is to see them
  std::vector<std::string> units;   // paths of those that are compiled, in order
  std::set<std::string> libraries;  // wanted: "cublas", "cublasLt", "cudnn"
  bool blas_handle = false;         // at::cuda::getCurrentCUDABlasHandle()
};

using ExtensionProblem = FileProblem;

// Throws ExtensionProblem.
ExtensionSources read_extension(const Candidate& candidate);

// Names under which the headers of ours can be included: all of them give the same.
const std::vector<std::string>& tensor_headers();

}  // namespace warpsmith::toolchain

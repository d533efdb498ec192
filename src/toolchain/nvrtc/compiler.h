// NVRTC as a sandboxed, limited child (warpsmith-nvrtc), and where its library and CUDA's headers lie.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../common/compiler_child.h"
#include "protocol.h"

namespace warpsmith::toolchain {

// The NVRTC of this process, found once: WARPSMITH_NVRTC, else what the build found.
struct NvrtcHere {
  std::filesystem::path program, library;
  std::vector<std::filesystem::path>
      include_folders;  // WARPSMITH_CUDA_INCLUDE, else those beside the library
  NvrtcAbout about;
  std::string id;  // version and what tells this very library and these headers from others
  // Whether this header of CUDA's is here, or the folder that it is in. torch's wheel brings neither CUDA's
  // C++ library (cuda/, cub/) nor crt/, which mma.h includes.
  bool has_header(std::string_view name) const;
};
// Throws Error where there is none, and where this program was built without CUDA.
const NvrtcHere& nvrtc_here();
// Empty, or why nvrtc_here() throws.
const std::string& nvrtc_problem();

using NvrtcAnswers = std::map<std::string, NvrtcAnswer>;  // by target
struct NvrtcRun : CompilerRun {
  NvrtcAnswers answers;  // the child may have ended before the last
};
// Compiles `source` for targets, in `scratch`, where the cubins then lie.
NvrtcRun run_nvrtc(const NvrtcRequest& request, const std::filesystem::path& scratch,
                   const CompileOptions& limits);

// The parts of that. warpsmith-nvrtc in `scratch`, without arguments and input; a request that says where the
// library and CUDA's headers are; the answers that lie in `folder`.
process::ChildSpec nvrtc_spec(const std::filesystem::path& scratch, const CompileOptions& limits);
NvrtcRequest with_places(NvrtcRequest request);
NvrtcAnswers read_answers(const NvrtcRequest& request, const std::filesystem::path& folder);

}  // namespace warpsmith::toolchain

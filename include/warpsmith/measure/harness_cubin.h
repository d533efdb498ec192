// The harness's own kernels as machine code. They take the way of a candidate's: same compiler, same sandbox,
// same cache. Needs neither torch nor a GPU, so that a job that compiles can have them ready for one that
// measures: no GPU waits for a compiler then.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace warpsmith::measure {

// For the GPU type `target` ("sm_90a"), from the cache (a folder; made if missing) or made by NVRTC. Throws
// Error.
std::vector<std::byte> harness_cubin(const std::string& target, const std::filesystem::path& cache,
                                     bool unsandboxed);

// Digest of the text of the kernels that a Fingerprint (records/ceilings.h) is made with.
std::string fingerprint_code();

}  // namespace warpsmith::measure

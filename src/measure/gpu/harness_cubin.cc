#include "warpsmith/measure/harness_cubin.h"

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/toolchain/gpu.h"

// answers/value_elements.h, kernels.cu and fingerprint.cu, made by CMake
extern const char harness_value_elements[];
extern const char harness_kernels[];
extern const char harness_fingerprint[];

namespace warpsmith::measure {

std::string fingerprint_code() { return sha256_hex(harness_fingerprint).substr(0, 16); }

std::vector<std::byte> harness_cubin(const std::string& target, const std::filesystem::path& cache,
                                     bool unsandboxed) {
  const auto parsed = toolchain::parse_gpu_target(target);
  if (!parsed) throw Error("`" + target + "` is no target of NVRTC");
  std::string source;
  for (const char* kernel :
       {"ws_hold", "ws_values", "ws_canaries", "ws_outputs", "ws_differs", "ws_scrub", "ws_touch",
        "ws_poison", "ws_read", "ws_copy", "ws_nothing", "ws_pattern", "ws_fma32", "ws_fma64", "ws_reread"})
    source += std::string("// plan: launch ") + kernel + "<<<1, 1>>>()\n";
  const Candidate kernels = make_plan_candidate(
      "harness", source + harness_value_elements + harness_kernels + harness_fingerprint, {});
  task::Task task;
  task.id = "harness";
  toolchain::CompileOptions options;
  options.cache = cache;
  options.unsandboxed = unsandboxed;
  options.timeout_s = 120;
  const toolchain::CompileResult result = toolchain::compile_for_gpu(kernels, task, *parsed, options);
  if (result.verdict != Verdict::kOk)
    throw Error("the harness's own kernels do not compile for " + target + ": " + result.log);
  const std::string bytes = read_file(result.binary);
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

}  // namespace warpsmith::measure

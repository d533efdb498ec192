// The model's own kernels, made without a GPU.
#include <gtest/gtest.h>

#include <string>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::toolchain {
namespace {

// Rows that a warp holds, and rows that a block does.
TEST(ModelKernels, AreMadeForEveryGeneration) {
  const std::string source = read_file(WARPSMITH_SOURCE_DIR "/src/model/gpu/kernels.cu");
  std::string launches;
  for (std::size_t at = source.find("ws_"); at != std::string::npos; at = source.find("ws_", at + 1))
    launches += "// plan: launch " + source.substr(at, source.find('(', at) - at) + "<<<1, 1>>>()\n";
  const Scratch scratch;
  CompileOptions options;
  options.cache = scratch.path();
  options.unsandboxed = true;
  options.timeout_s = 120;
  task::Task task;
  task.id = "model";
  for (const char* width : {"64", "576", "4096"})
    for (const char* target : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_120"}) {
      const Candidate kernels =
          make_plan_candidate("model", launches + "#define WIDTH " + width + "\n" + source, {});
      const CompileResult result = compile_for_gpu(kernels, task, *parse_gpu_target(target), options);
      EXPECT_EQ(result.verdict, Verdict::kOk) << width << " " << target << "\n" << result.log;
    }
}

}  // namespace
}  // namespace warpsmith::toolchain

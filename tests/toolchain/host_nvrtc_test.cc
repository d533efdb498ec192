// Candidates for the CPU twin where NVRTC is: it decides what is CUDA, g++ what the twin can run.
#include <gtest/gtest.h>
#include <unistd.h>

#include "copy_task.h"
#include "warpsmith/base/files.h"
#include "warpsmith/toolchain/gpu.h"
#include "warpsmith/toolchain/host.h"

namespace warpsmith::toolchain {
namespace {

class HostWithNvrtc : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.cache = fs::temp_directory_path() / ("warpsmith-host-nvrtc-test-" + std::to_string(::getpid()));
    fs::remove_all(options_.cache);
    task_ = copy_task();
  }
  void TearDown() override { fs::remove_all(options_.cache); }

  // The statements are line 2, from column 56.
  CompileResult compile(const std::string& statements, const std::string& front = "") {
    return compile_for_host(make_plan_candidate("t",
                                                "// plan: launch k<<<1, 32>>>(x, out, N)\n"
                                                "__global__ void k(const float* x, float* out, int N) { " +
                                                    statements + " }\n" + front,
                                                {}),
                            task_, options_);
  }

  CompileOptions options_;
  task::Task task_;
};

TEST_F(HostWithNvrtc, WhatNvrtcRefusesIsACompileErrorInItsWords) {
  const std::pair<const char*, const char*> rows[] = {
      {"out[0] = oops;", "kernel.cu:2:65: error: identifier \"oops\" is undefined\n"},
      {"__int128 a = N; out[0] = a;", "kernel.cu:2:56: error: 128-bit integer type is only supported"},
      {"float a[N]; a[0] = 1; out[0] = a[0];",
       "kernel.cu:2:64: error: expression must have a constant value"},
      {"extern __shared__ float s[]; { extern __shared__ int s[]; s[0] = N; } out[0] = s[0];",
       "kernel.cu:2:109: error: declaration is incompatible with previous \"s\""},
      {"out[0] = min(0, 0.f);",
       "kernel.cu:2:65: error: more than one instance of overloaded function \"min\""},
      {"out[0] = std::max(1, 2);", "kernel.cu:2:70: error: namespace \"std\" has no member \"max\""},
      {"half h = __float2half(1.f); out[0] = __half2float(h);",
       "kernel.cu:2:56: error: identifier \"half\" is undefined"},
      {"static int s = N; out[0] = s;", "kernel.cu:2:67: error: dynamic initialization is not supported"},
      {"struct Z { int n; float a[0]; }; out[0] = sizeof(Z);", "kernel.cu:2:82: error: the size of an array"},
      {"out[0] = ((float[]){1, 2})[N & 1];", "kernel.cu:2:"},
      // The twin lacks inline PTX, but this source is wrong wherever it is compiled.
      {"asm volatile(\"membar.gl;\"); out[0] = oops;",
       "kernel.cu:2:93: error: identifier \"oops\" is undefined"},
      // Only the assembler sees it.
      {"__shared__ float a[9000], b[9000]; a[N] = x[0]; b[N] = x[1]; __syncthreads(); out[0] = a[31] + "
       "b[31];",
       "kernel.cu: error: Entry function 'k(float const*, float*, int)' uses too much shared data"},
  };
  for (const auto& [statements, log] : rows) {
    const CompileResult result = compile(statements);
    EXPECT_EQ(result.verdict, Verdict::kCompileError) << statements << "\n" << result.log;
    EXPECT_EQ(result.log.find(log), 0u) << result.log << "for\n" << statements;
    EXPECT_TRUE(result.binary.empty());
  }
}

TEST_F(HostWithNvrtc, WhatOnlyTheTwinRefusesIsUnsupported) {
  const std::pair<const char*, const char*> rows[] = {
      {"asm volatile(\"membar.gl;\"); out[0] = 1;", "kernel.cu:2:56: error: the CPU twin has no inline PTX"},
      {"if (N) goto end; int a = 1; out[0] = a; end:;",
       "kernel.cu: error: NVRTC compiles this, the CPU twin's compiler does not:\n"
       "kernel.cu:2:96: error: jump to label 'end'"},
      // For sm_90 and newer.
      {"asm volatile(\"barrier.cluster.arrive;\"); out[0] = 1;",
       "kernel.cu:2:56: error: the CPU twin has no"},
  };
  for (const auto& [statements, log] : rows) {
    const CompileResult result = compile(statements);
    EXPECT_EQ(result.verdict, Verdict::kUnsupported) << statements << "\n" << result.log;
    EXPECT_EQ(result.log.find(log), 0u) << result.log << "for\n" << statements;
  }
}

TEST_F(HostWithNvrtc, GoodCandidatesCompileAndAreFoundAgain) {
  const CompileResult first = compile("int i = threadIdx.x; if (i < N) out[i] = min(x[i], 1.f);");
  ASSERT_EQ(first.verdict, Verdict::kOk) << first.log;
  EXPECT_EQ(std::distance(fs::directory_iterator(options_.cache), fs::directory_iterator()), 2);
  EXPECT_TRUE(compile("int i = threadIdx.x; if (i < N) out[i] = min(x[i], 1.f);").cached);
}

// A verdict with NVRTC and one without it are kept apart.
TEST_F(HostWithNvrtc, TheToolchainsNameSaysThatItWasAsked) {
  EXPECT_NE(host_toolchain_id().find(gpu_toolchain_id()), std::string::npos);
  EXPECT_FALSE(nvrtc_of_twin().name.empty());
  EXPECT_EQ(nvrtc_of_twin().why_none, "");
}

}  // namespace
}  // namespace warpsmith::toolchain

// Which kernels are a candidate's own, by what its sources declare.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "extension/own_kernels.h"

namespace warpsmith::measure {
namespace {

using ::testing::HasSubstr;

OwnKernels of(const std::string& path, const std::string& text) {
  Candidate candidate;
  candidate.files = {{path, text}};
  return OwnKernels(candidate);
}

TEST(OwnKernels, AreThoseThatTheSourcesDeclare) {
  const OwnKernels own = of("kernel.cu", R"(
    // __global__ void only_said(float*);
    /* __global__ void also_only_said(float*); */
    extern "C" __global__ void plain(const float* x) {}
    template <int N, typename T = float>
    __global__ void __launch_bounds__(max(N, 128), 2) bounded(T* x) {}
    __global__
    __attribute__((noinline)) static void spread_out
      (float* x);
    namespace mine { namespace inner { __global__ void deep() {} } }
    namespace a::b { __global__ void joined() {} }
    namespace { __global__ void hidden() {} }
    void host_only(float*) {}
  )");
  for (const char* name :
       {"plain", "_Z7boundedILi4EfEvPT0_", "_Z10spread_outPf", "_ZN4mine5inner4deepEv", "_ZN1a1b6joinedEv",
        "_ZN12_GLOBAL__N_16hiddenEv", "void bounded<4, float>(float*)"})
    EXPECT_TRUE(own.has(name)) << name;
  for (const char* name : {"only_said", "also_only_said", "host_only", "float", "sm90_xmma_gemm_f32f32",
                           "_ZN3cub5plainEv", "_ZN2at6native7boundedILi4EfEvPT0_", ""})
    EXPECT_FALSE(own.has(name)) << name;
}

// torch's and CUB's are not, whatever they are called, nor what a template of theirs is instantiated with.
TEST(OwnKernels, LibrariesAreNot) {
  const OwnKernels own = of("kernel.cu", "struct F {}; __global__ void elementwise_kernel() {}");
  EXPECT_TRUE(own.has("_Z18elementwise_kernelv"));
  EXPECT_FALSE(
      own.has("void at::native::elementwise_kernel<128, 4, at::native::f<F>::{lambda(int)#1}>(int)"));
  EXPECT_FALSE(own.has("void cub::DeviceReduceKernel<F, (cub::Mode)1>(F*)"));
}

TEST(OwnKernels, OfPython) {
  const OwnKernels own = of("model.py", R"(
import glob, torch, triton
import triton.language as tl
from torch.utils.cpp_extension import load_inline
files, half = glob.glob("csrc/*.cu"), 7 // 2; early = "__global__ void behind_a_division(int) {}"
source = """
__global__ void in_a_string(float* x, int n) { }
"""
@triton.autotune(configs=[], key=[])
@triton.jit
def fused(x_ptr, n, BLOCK: tl.constexpr):
    pass

def helper(x):
    return x
)");
  EXPECT_TRUE(own.has("fused"));
  EXPECT_TRUE(own.has("_Z11in_a_stringPfi"));
  EXPECT_TRUE(own.has("_Z17behind_a_divisioni"));
  EXPECT_FALSE(own.has("helper"));
  EXPECT_FALSE(own.has("triton_poi_fused_0"));  // torch.compile wrote it
}

TEST(OwnKernels, TheShareIsOfTime) {
  const OwnKernels own = of("kernel.cu", "__global__ void k(float* x) {}");
  EXPECT_EQ(own.share_of({}), std::nullopt);
  EXPECT_EQ(own.share_of({{"_Z1kPf", 300}}), 1.0);
  EXPECT_EQ(own.share_of({{"gemm", 300}, {"_Z1kPf", 100}}), 0.25);
  EXPECT_EQ(own.told({{"gemm", 300}, {"_Z1kPf", 100}}), "gemm 75 %, own k 25 %");
  EXPECT_THAT(own.told(std::vector<device::ExtensionKernel>(9, {"gemm", 1})), HasSubstr(", 3 more"));
}

}  // namespace
}  // namespace warpsmith::measure

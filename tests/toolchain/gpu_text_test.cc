// What is decided from texts alone: targets, what a candidate may include, what NVRTC's log says.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/compile_unit.h"
#include "common/cuda_log.h"
#include "nvrtc/log.h"
#include "nvrtc/source.h"
#include "warpsmith/base/error.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::toolchain {
namespace {

TEST(GpuTarget, TextsAreReadAndWritten) {
  for (const char* good :
       {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_120a"}) {
    const auto target = parse_gpu_target(good);
    ASSERT_TRUE(target) << good;
    EXPECT_EQ(to_string(*target), good);
  }
  EXPECT_EQ(parse_gpu_target("sm_90a"), (GpuTarget{9, 0, 'a'}));
  EXPECT_EQ(parse_gpu_target("sm_120"), (GpuTarget{12, 0, 0}));
  for (const char* bad : {"", "sm_", "90a", "sm_9", "sm_90b", "sm_90aa", "sm_a", "compute_90", "SM_90",
                          "sm_1000", "sm_09", "sm_90 "})
    EXPECT_FALSE(parse_gpu_target(bad)) << bad;
}

std::string target_name(std::string_view type) {
  const auto target = target_of_type(type);
  return target ? to_string(*target) : "";
}

TEST(GpuTarget, TypesOfGpus) {
  const std::pair<const char*, const char*> rows[] = {
      {"H100", "sm_90a"},
      {"h100", "sm_90a"},
      {"H200", "sm_90a"},
      {"H20", "sm_90a"},
      {"GH200", "sm_90a"},
      {"NVIDIA H100 80GB HBM3", "sm_90a"},
      {"nvidia_h200", "sm_90a"},
      {"A100", "sm_80"},
      {"a100-sxm4-80gb", "sm_80"},
      {"A100_3g.20gb", "sm_80"},
      {"A30", "sm_80"},
      {"RTX3090", "sm_86"},
      {"rtx_3090", "sm_86"},
      {"NVIDIA GeForce RTX 3090 Ti", "sm_86"},
      {"A40", "sm_86"},
      {"A10", "sm_86"},
      {"A10G", "sm_86"},
      {"A6000", "sm_86"},
      {"RTX A6000", "sm_86"},
      {"rtxa6000", "sm_86"},
      {"L40", "sm_89"},
      {"L40S", "sm_89"},
      {"L4", "sm_89"},
      {"RTX4090", "sm_89"},
      {"NVIDIA GeForce RTX 4070 SUPER", "sm_89"},
      {"RTX 6000 Ada Generation", "sm_89"},
      {"NVIDIA RTX 4000 Ada Generation", "sm_89"},
      {"B200", "sm_100a"},
      {"GB200", "sm_100a"},
      {"B300", "sm_103a"},
      {"RTX 5090", "sm_120a"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm_120a"},
      {"T4", "sm_75"},
      {"Tesla T4", "sm_75"},
      {"V100", ""},
      {"Tesla V100-SXM2-16GB", ""},
      {"P100", ""},
      {"MI300X", ""},
      {"cpu", ""},
      {"", ""},
      {"RTX", ""},
  };
  for (const auto& [type, target] : rows) EXPECT_EQ(target_name(type), target) << type;
}

TEST(GpuTarget, Capabilities) {
  EXPECT_EQ(to_string(*target_of_capability(8, 0)), "sm_80");
  EXPECT_EQ(to_string(*target_of_capability(8, 9)), "sm_89");
  EXPECT_EQ(to_string(*target_of_capability(9, 0)), "sm_90a");
  EXPECT_EQ(to_string(*target_of_capability(10, 0)), "sm_100a");
  EXPECT_FALSE(target_of_capability(7, 0));
  EXPECT_FALSE(target_of_capability(0, 0));
}

// "" where the source is let through, else the mistake.
std::string mistake_of(const std::string& source, const std::string& missing = "") {
  try {
    CleanSource clean;
    read_tokens(source, &clean);
    drop_dead_text(&clean);
    refuse_for_gpu(clean, [&](std::string_view name) { return name != missing; });
    return "";
  } catch (const SourceProblem& p) {
    return place_of(p);
  }
}

TEST(GpuSource, WhatIsLetThrough) {
  for (const char* good : {
           "#include <cuda_fp16.h>\n",
           "#include \"mma.h\"\n",
           "  #  include <cooperative_groups/reduce.h> // why\n",
           "#include <cuda/std/array>\n",
           "#include <cub/block/block_reduce.cuh>\n",
           "#include <stdint.h>\n#include <cmath>\n",
           "/* #include <vector> */\n",
           "// #include <vector>\n",
           "const char* s = \"#include <vector>\";\n",
           "#pragma unroll 4\n#pragma once\n",
           "#define A(x, y) x##y\n#define B(x) #x\n",
           "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n#elif "
           "__has_include(<cuda/barrier>)\n#endif\n",
           "__device__ void f() { asm volatile(\"cp.async.wait_all;\"); }\n",
           "template <int N> struct S; using T = S<(3 < 2)>; __device__ int a = 1'000, b = 5 % 3;\n",
           "__global__ void k() { int* p = new int; delete p; __trap(); }\n",
       })
    EXPECT_EQ(mistake_of(good), "") << good;
}

struct SourceRow {
  const char* source;
  const char* mistake;
};

TEST(GpuSource, WhatIsNot) {
  const char* only = "kernel.cu:1:1: error: only CUDA's own headers can be included\n";
  const SourceRow rows[] = {
      {"#include \"/etc/passwd\"\n", only},
      {"#include </etc/passwd>\n", only},
      {"#include <vector>\n", only},
      {"#include \"../secret.h\"\n", only},
      {"#include <cuda/../../../../etc/passwd>\n", only},
      {"#include <cuda/./x>\n", only},
      {"#include \"kernel.cu\"\n", only},
      {"#include <cub/cub.cuh>\n",
       "kernel.cu:1:1: error: <cub/cub.cuh> brings host functions: include what the kernel uses, "
       "<cub/block/…>, <cub/warp/…>\n"},
      {"int a;\n#include <cub/device/device_reduce.cuh>\n",
       "kernel.cu:2:1: error: <cub/device/device_reduce.cuh> brings host functions: include what the kernel "
       "uses, <cub/block/…>, <cub/warp/…>\n"},
      {"#include <thrust/sort.h>\n", only},
      {"#include <cuda/std/array\\\n>\n", ""},
      {"#inc\\\nlude \"/etc/passwd\"\n", only},
      {"/* */ #include \"/etc/passwd\"\n", "kernel.cu:1:7: error: only CUDA's own headers can be included\n"},
      {"int a;\n#define F \"/etc/passwd\"\n#include F\n",
       "kernel.cu:3:1: error: #include wants <name> or \"name\"\n"},
      {"#include <cuda_fp16.h> \"/etc/passwd\"\n",
       "kernel.cu:1:1: error: #include wants <name> or \"name\"\n"},
      {"#include_next <cuda_fp16.h>\n",
       "kernel.cu:1:1: error: #include_next is no part of device code here\n"},
      {"#import <cuda_fp16.h>\n", "kernel.cu:1:1: error: #import is no part of device code here\n"},
      {"#embed \"/etc/passwd\"\n", "kernel.cu:1:1: error: #embed is no part of device code here\n"},
      {"#line 7 \"other.cu\"\n", "kernel.cu:1:1: error: #line is no part of device code here\n"},
      {"%:include \"/etc/passwd\"\n", "kernel.cu:1:1: error: digraphs are not read\n"},
      {"?\?=include \"/etc/passwd\"\n", "kernel.cu:1:1: error: trigraphs are not read\n"},
      {"// what?\?/\n#include \"/etc/passwd\"\n",
       "kernel.cu:2:1: error: only CUDA's own headers can be included\n"},
      {"int a; # include \"/etc/passwd\"\n", "kernel.cu:1:8: error: stray `#`\n"},
      {"const char* s = R\"(\" /*)\";\n#include \"/etc/passwd\"\n// */\n",
       "kernel.cu:1:17: error: raw strings are not read\n"},
      {"#define S R\"(\" /*)\"\n#include \"/etc/passwd\"\n// */\n",
       "kernel.cu:1:1: error: raw strings are not read\n"},
      {"#if __has_include(\"/etc/passwd\")\n#endif\n",
       "kernel.cu:1:1: error: __has_include asks for CUDA's own headers alone\n"},
      {"#define F <mma.h>\n#if __has_include(F)\n#endif\n",
       "kernel.cu:2:1: error: __has_include asks for CUDA's own headers alone\n"},
      {"#define H __has_include\n", "kernel.cu:1:1: error: __has_include is no part of device code here\n"},
      {"#if _CCCL_HAS_INCLUDE(\"/etc/passwd\")\n#endif\n",
       "kernel.cu:1:1: error: _CCCL_HAS_INCLUDE is no part of device code here\n"},
      {"#define THRUST_MR_STD_MR_HEADER \"/etc/passwd\"\n",
       "kernel.cu:1:1: error: macros of Thrust are no part of device code here\n"},
      {"#if __has_embed(\"/etc/passwd\")\n#endif\n",
       "kernel.cu:1:1: error: __has_embed is no part of device code here\n"},
      {"import <cuda_fp16.h>;\n", "kernel.cu:1:1: error: `import` is no part of device code here\n"},
  };
  for (const SourceRow& row : rows) EXPECT_EQ(mistake_of(row.source), row.mistake) << row.source;
}

std::string without_dead_text(const std::string& source) {
  CleanSource clean;
  read_tokens(source, &clean);
  drop_dead_text(&clean);
  std::string tokens;
  for (const Token& t : clean.tokens) tokens += "[" + std::string(t.text) + "]";
  // Tokens are those of the text that is left.
  std::string again;
  for (const Token& t : tokens_of(clean.text, 1)) again += "[" + std::string(t.text) + "]";
  EXPECT_EQ(tokens, again);
  EXPECT_EQ(std::count(clean.text.begin(), clean.text.end(), '\n'),
            std::count(source.begin(), source.end(), '\n') + 1);
  return tokens;
}

TEST(GpuSource, TextBelowIfZeroIsTakenOut) {
  const std::pair<const char*, const char*> rows[] = {
      {"#if 0\n#include <vector>\n#endif\na\n", "[#if 0][#endif][a]"},
      {"# if /* no */ 0 // no\nb @ #x ` \n#else\n#include <vector>\n#endif",
       "[# if          0      ][#else]"
       "[#include <vector>][#endif]"},
      {"#if 0\n#if 1\n#else\n#elif\n#ifdef X\n#endif\n#endif\nb\n#elif 1\na\n#endif\n",
       "[#if 0][#elif 1][a][#endif]"},
      {"#if 0\n#nonsense\n#ifndef X\n#endif\n# endif\na\n", "[#if 0][# endif][a]"},
      {"#if 0\nb\n#if 0\nb\n#endif", "[#if 0]"},
      {"#if 00\na\n#endif", "[#if 00][a][#endif]"},
      {"#if 0 + 1\na\n#endif", "[#if 0 + 1][a][#endif]"},
      {"#if 0 || X\na\n#endif", "[#if 0 || X][a][#endif]"},
      {"#if X\n#elif 0\na\n#endif", "[#if X][#elif 0][a][#endif]"},
      {"#if \\\n0\nb\n#endif\na", "[#if 0][#endif][a]"},
      {"#ifdef X\n#if 0\nb\n#endif\na\n#endif", "[#ifdef X][#if 0][#endif][a][#endif]"},
  };
  for (const auto& [source, left] : rows) EXPECT_EQ(without_dead_text(source), left) << source;
  EXPECT_EQ(mistake_of("#if 0\n#include <vector>\n#else\n#include <list>\n#endif\n"),
            "kernel.cu:4:1: error: only CUDA's own headers can be included\n");
  EXPECT_EQ(mistake_of("#if 1\n#else\n#include <vector>\n#endif\n"),
            "kernel.cu:3:1: error: only CUDA's own headers can be included\n");
  EXPECT_EQ(mistake_of("#if 0\n#include <vector>\n%:endif\n"),
            "kernel.cu:3:1: error: digraphs are not read\n");
}

TEST(GpuSource, WheelsHaveNoWmma) {
  EXPECT_EQ(mistake_of("int a;\n#include <mma.h>\n", "mma.h"),
            "kernel.cu:2:1: error: CUDA's headers here have no <mma.h>, or not what it includes\n");
  EXPECT_EQ(mistake_of("#include <cuda/barrier>\n", "cuda/barrier"),
            "kernel.cu:1:1: error: CUDA's headers here have no <cuda/barrier>, or not what it includes\n");
  EXPECT_EQ(mistake_of("#include <cuda/barrier>\n", "cuda/std/array"), "");
}

TEST(NvrtcLog, WhatTheTargetLacks) {
  const std::string lacks =
      "ptxas application ptx input, line 35; error   : Instruction 'wgmma.fence' not supported on .target "
      "'sm_80'\n"
      "ptxas application ptx input, line 36; error   : Instruction 'wgmma.fence' not supported on .target "
      "'sm_80'\n"
      "ptxas application ptx input, line 37; error   : Feature 'redux' requires .target sm_80 or higher\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n";
  EXPECT_TRUE(target_lacks_features(lacks));
  EXPECT_EQ(readable_nvrtc_log(lacks, 4096),
            "kernel.cu: error: Instruction 'wgmma.fence' not supported on .target 'sm_80'\n"
            "kernel.cu: error: Feature 'redux' requires .target sm_80 or higher\n");
  EXPECT_FALSE(target_lacks_features(lacks + "ptxas fatal   : Unresolved extern function 'f'\n"));
  EXPECT_FALSE(target_lacks_features("kernel.cu(2): error: identifier \"oops\" is undefined\n"));
  EXPECT_FALSE(target_lacks_features(""));
}

TEST(NvrtcLog, FirstLinesOfErrorsAlone) {
  EXPECT_EQ(
      readable_nvrtc_log("kernel.cu(2): error: identifier \"oops\" is undefined\n"
                         "    o[0]=oops;\n"
                         "         ^\n\n"
                         "kernel.cu(9): warning #177-D: variable \"a\" was declared but never referenced\n"
                         "    int a;\n"
                         "        ^\n\n"
                         "1 error detected in the compilation of \"kernel.cu\".\n",
                         4096),
      "kernel.cu:2:8: error: identifier \"oops\" is undefined\n");
}

TEST(NvrtcLog, NoPathsOfThisMachine) {
  EXPECT_EQ(readable_nvrtc_log("/opt/cuda/include/cuda_fp16.h(5): error: see declaration in "
                               "\"/opt/cuda/include/cuda_fp16.hpp\" or '/a/b c'\n"
                               "  a / b\n  ^\n",
                               4096),
            "kernel.cu: error: see declaration in \"cuda_fp16.hpp\" or 'b c'\n");
  EXPECT_EQ(readable_nvrtc_log("kernel.cu(1): error: no operator \"/\" matches a / b\n", 4096),
            "kernel.cu:1:1: error: no operator \"/\" matches a / b\n");
}

TEST(NvrtcLog, WhatHasNoPlaceIsSaidOnce) {
  const std::string mistake =
      "/x/cub/a.cuh(5): error: A function explicitly marked as a __host__ function is not allowed in JIT "
      "mode\n  int f();\n      ^\n\n";
  EXPECT_EQ(
      readable_nvrtc_log(mistake + mistake + "kernel.cu(1): error: no\n\nkernel.cu(2): error: no\n" + mistake,
                         4096),
      "kernel.cu: error: A function explicitly marked as a __host__ function is not allowed in JIT mode\n"
      "kernel.cu:1:1: error: no\nkernel.cu:2:1: error: no\n");
}

TEST(NvrtcLog, NamesOfThePlanInTemplateArguments) {
  const auto log = [](const std::string& message) {
    return "__nv_name_map(2): error: " + message + "\n  #pragma nv_mangled_name k<T, int>\n         ^\n";
  };
  EXPECT_EQ(readable_nvrtc_log(log("identifier \"T\" is undefined"), 4096),
            "kernel.cu:1:1: error: the plan launches `k<T, int>`, which is no __global__ function of this "
            "source: template arguments are C++ text, where names of the plan mean nothing, and `T` is "
            "undefined\n");
  for (const char* other : {"identifier \"k\" is undefined", "identifier \"in\" is undefined"})
    EXPECT_EQ(readable_nvrtc_log(log(other), 4096),
              "kernel.cu:1:1: error: the plan launches `k<T, int>`, which is no __global__ function of this "
              "source\n");
}

TEST(NvrtcLog, PlaceThatLedIntoAHeader) {
  EXPECT_EQ(readable_nvrtc_log(
                "/x/array(448): error: static assertion failed\n"
                "    static_assert(a);\n"
                "    ^\n"
                "          detected during instantiation of \"get\" [with N=5] at line 6 of kernel.cu\n",
                4096),
            "kernel.cu:6:1: error: static assertion failed\n");
}

TEST(NvrtcLog, SilenceIsAnErrorToo) {
  EXPECT_EQ(readable_nvrtc_log("", 4096), "kernel.cu: error: the compiler failed\n");
  EXPECT_EQ(readable_nvrtc_log("ptxas info    : 0 bytes gmem\n\n  Out of something in /tmp/a.ptx\n", 4096),
            "kernel.cu: error: the compiler failed: Out of something in a.ptx\n");
}

TEST(NvrtcLog, ErrorsOfTheOptimiserHaveACapital) {
  EXPECT_EQ(
      readable_nvrtc_log("kernel.cu(2): Error: Formal parameter space overflowed in function k\n", 4096),
      "kernel.cu:2:1: error: Formal parameter space overflowed in function k\n");
}

TEST(NvrtcLog, ResourcesOfKernels) {
  const auto kernels = read_resources(
      "ptxas info    : 54 bytes gmem, 128 bytes cmem[3]\n"
      "ptxas info    : Compiling entry function '_Z3rowPf' for 'sm_80'\n"
      "ptxas info    : Function properties for _Z3rowPf\n"
      "ptxas         .     816 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 12 registers, used 1 barriers, 1024 bytes smem, 372 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 0 barriers, 372 bytes cmem[0]\n");
  ASSERT_EQ(kernels.size(), 2u);
  const KernelResources& row = kernels.at("_Z3rowPf");
  EXPECT_EQ(row.registers, 12);
  EXPECT_EQ(row.shared_bytes, 1024u);
  EXPECT_EQ(row.local_bytes, 816u);
  EXPECT_EQ(row.spill_store_bytes, 12u);
  EXPECT_EQ(row.spill_load_bytes, 8u);
  EXPECT_EQ(kernels.at("k").registers, 40);
  EXPECT_EQ(kernels.at("k").shared_bytes, 0u);
}

}  // namespace
}  // namespace warpsmith::toolchain

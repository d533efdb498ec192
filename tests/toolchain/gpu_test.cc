#include "warpsmith/toolchain/gpu.h"
#include "copy_task.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith::toolchain {
namespace {

constexpr const char* kGood = R"(__global__ void k(const float* x, float* out, int N) {
  if (threadIdx.x < N) out[threadIdx.x] = x[threadIdx.x];
}
)";

constexpr GpuTarget kHopper{9, 0, 'a'};
constexpr GpuTarget kAmpere{8, 0, 0};

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_ = fs::temp_directory_path() / ("warpsmith-gpu-test-" + std::to_string(::getpid()));
    fs::remove_all(cache_);
    options_.cache = cache_;
    task_ = copy_task();
  }
  void TearDown() override { fs::remove_all(cache_); }

  CompileResult compile_whole(const std::string& source, const GpuTarget& target = kHopper,
                              std::vector<std::string> options = {}) {
    Candidate candidate = make_plan_candidate("t", source, {});
    candidate.options = std::move(options);
    return compile_for_gpu(candidate, task_, target, options_);
  }
  // The plan is line 1.
  CompileResult compile(const std::string& body, const GpuTarget& target = kHopper,
                        std::vector<std::string> options = {}) {
    return compile_whole("// plan: launch k<<<1, 32>>>(x, out, N)\n" + body, target, std::move(options));
  }
  CubinFacts facts_of(const CompileResult& result) {
    EXPECT_EQ(result.verdict, Verdict::kOk) << result.log;
    return result.verdict == Verdict::kOk ? read_cubin_facts(result.binary) : CubinFacts{};
  }
  static std::uint64_t bytes_of_writable(const CubinFacts& facts) {
    std::uint64_t bytes = 0;
    for (const SymbolFacts& s : facts.symbols)
      if (!s.constant) bytes += s.bytes;
    return bytes;
  }

  fs::path cache_;
  CompileOptions options_;
  task::Task task_;
};

TEST_F(Gpu, CompilesOnceAndFindsItAgain) {
  const CompileResult first = compile(kGood);
  ASSERT_EQ(first.verdict, Verdict::kOk) << first.log;
  EXPECT_FALSE(first.cached);
  EXPECT_EQ(first.binary.extension(), ".cubin");
  const CompileResult again = compile(kGood);
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.binary, first.binary);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache_), fs::directory_iterator()), 2);
  EXPECT_NE(compile(kGood, kAmpere).binary, first.binary);
}

TEST_F(Gpu, DamagedEntryIsCompiledAgain) {
  const CompileResult first = compile(kGood);
  ASSERT_EQ(first.verdict, Verdict::kOk) << first.log;
  std::ofstream(first.binary, std::ios::app) << "x";
  EXPECT_FALSE(compile(kGood).cached);
  EXPECT_TRUE(compile(kGood).cached);
  fs::path entry = first.binary;
  entry.replace_extension(".json");
  std::ofstream(entry) << "{";
  try {
    read_cubin_facts(first.binary);
    ADD_FAILURE() << "damaged facts were read";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(entry.string()), std::string::npos) << e.what();
  }
  EXPECT_FALSE(compile(kGood).cached);
}

TEST_F(Gpu, FailuresAreCachedToo) {
  const char* bad = "__global__ void k(const float* x, float* out, int N) { oops; }\n";
  EXPECT_FALSE(compile(bad).cached);
  const CompileResult again = compile(bad);
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.verdict, Verdict::kCompileError);
  EXPECT_NE(again.log.find("oops"), std::string::npos);
}

TEST_F(Gpu, TwoAtOnceWithOneCache) {
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(compile(kGood).verdict == Verdict::kOk ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(compile(kGood).cached);
}

TEST_F(Gpu, SeveralTargetsWithOneChild) {
  const std::vector<GpuTarget> targets = {kAmpere, {8, 6, 0}, {8, 9, 0}, {9, 0, 0}, kHopper};
  const Candidate candidate =
      make_plan_candidate("t", std::string("// plan: launch k<<<1, 32>>>(x, out, N)\n") + kGood, {});
  EXPECT_EQ(compile_for_gpu(candidate, task_, targets[2], options_).verdict, Verdict::kOk);
  const auto results = compile_for_gpus(candidate, task_, targets, options_);
  ASSERT_EQ(results.size(), targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    EXPECT_EQ(facts_of(results[i]).target, to_string(targets[i]));
    EXPECT_EQ(results[i].cached, i == 2);
  }
}

TEST_F(Gpu, WhatTheTargetLacksIsUnsupported) {
  const char* body =
      "__global__ void k(const float* x, float* out, int N) { asm volatile(\"barrier.cluster.arrive;\"); }\n";
  const CompileResult result = compile(body, kAmpere);
  EXPECT_EQ(result.verdict, Verdict::kUnsupported);
  EXPECT_EQ(result.log,
            "kernel.cu: error: Feature 'barrier.cluster.arrive' requires .target sm_90 or higher\n");
  EXPECT_EQ(compile(body, {9, 0, 0}).verdict, Verdict::kOk);
}

// Two processes that make one entry must make the same.
TEST_F(Gpu, TheSameSourceMakesTheSameBytes) {
  const std::string first = read_file(compile(kGood).binary);
  fs::remove_all(cache_);
  const CompileResult again = compile(kGood);
  EXPECT_FALSE(again.cached);
  EXPECT_EQ(read_file(again.binary), first);
}

TEST_F(Gpu, UnknownTargetIsTheCallersMistake) { EXPECT_THROW(compile(kGood, {7, 0, 0}), Error); }

TEST_F(Gpu, FactsOfKernels) {
  const CubinFacts facts = facts_of(compile(R"(
__global__ void __launch_bounds__(128) k(const float* x, float* out, int N) {
  __shared__ float s[256];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = s[(threadIdx.x + N) & 255];
}
)"));
  ASSERT_EQ(facts.kernels.size(), 1u);
  const KernelFacts& k = facts.kernels[0];
  EXPECT_EQ(facts.target, "sm_90a");
  EXPECT_FALSE(facts.nvrtc.empty());
  EXPECT_EQ(k.name, "k");
  EXPECT_EQ(k.lowered, "_Z1kPKfPfi");
  EXPECT_EQ(k.shared_bytes, 1024u);
  EXPECT_EQ(k.max_threads, 128);
  EXPECT_EQ(k.parameters, 3);
  EXPECT_GE(k.registers, 6);
  EXPECT_LE(k.registers, 40);
  EXPECT_EQ(k.local_bytes, 0u);
  EXPECT_EQ(k.spill_store_bytes, 0u);
}

TEST_F(Gpu, SpillsAndStackAreSeen) {
  // More values alive at once than 24 registers hold.
  std::string body = "__global__ void k(const float* x, float* out, int N) {\n";
  for (int i = 0; i < 64; ++i)
    body += "  float a" + std::to_string(i) + " = x[" + std::to_string(i * 7) + " * N];\n";
  body += "  __syncthreads();\n";
  for (int i = 0; i < 64; ++i)
    body +=
        "  out[" + std::to_string(i) + "] = a" + std::to_string(i) + " * a" + std::to_string(63 - i) + ";\n";
  body += "}\n";
  const KernelFacts spilt = facts_of(compile(body, kHopper, {"-maxrregcount=24"})).kernels.at(0);
  EXPECT_LE(spilt.registers, 24);
  EXPECT_GT(spilt.spill_store_bytes, 0u);
  EXPECT_GT(spilt.spill_load_bytes, 0u);
  EXPECT_GT(spilt.local_bytes, 0u);
  EXPECT_EQ(facts_of(compile(body)).kernels.at(0).spill_store_bytes, 0u);
}

TEST_F(Gpu, TemplatesAreFoundByNameExpression) {
  const CubinFacts facts = facts_of(compile_whole(R"(
// plan: launch row<float, 64><<<1, 64>>>(x, out)
// plan: launch tools::row2<3><<<1, 64>>>(x, out)
template <typename T, int B> __global__ void row(const T* x, T* out) { out[threadIdx.x] = x[B - 1 - threadIdx.x]; }
namespace tools {
template <int A> __global__ void row2(const float* x, float* out) { out[threadIdx.x] = A * x[0]; }
}
)"));
  ASSERT_EQ(facts.kernels.size(), 2u);
  EXPECT_EQ(facts.kernels[0].name, "row<float, 64>");
  EXPECT_EQ(facts.kernels[0].lowered, "_Z3rowIfLi64EEvPKT_PS0_");
  EXPECT_EQ(facts.kernels[1].name, "tools::row2<3>");
}

TEST_F(Gpu, TableOfSymbols) {
  const CubinFacts facts = facts_of(compile_whole(R"(
// plan: const W <- x
// plan: const table <- x
// plan: launch k<<<1, 32>>>(x, out, N)
__constant__ float W[32];
static __device__ float table[64];
__device__ int counter;
__device__ double fixed[2] = {1, 2};
__device__ int calls() { static int n; return n++; }
__global__ void k(const float* x, float* out, int N) {
  out[0] = W[N] + table[N] + calls() + counter++ + fixed[N & 1];
}
)"));
  ASSERT_EQ(facts.symbols.size(), 5u);
  EXPECT_EQ(facts.symbols[0].name, "W");
  EXPECT_EQ(facts.symbols[0].bytes, 128u);
  EXPECT_TRUE(facts.symbols[0].constant);
  EXPECT_EQ(facts.symbols[1].name, "table");
  EXPECT_EQ(facts.symbols[1].bytes, 256u);
  EXPECT_FALSE(facts.symbols[1].constant);
  EXPECT_EQ(bytes_of_writable(facts), 256u + 4 + 16 + 4);
}

// What a kernel can write to (cubin.h) is kept and put back by its name: nothing may be missing here.
TEST_F(Gpu, TableOfWhatNoDeclarationNames) {
  const CubinFacts facts = facts_of(compile(R"(
__device__ const char* volatile text;
__global__ void k(const float* x, float* out, int N) {
  int *p, *q;
  asm volatile("{ .global .align 16 .b32 hidden[5]; mov.u64 %0, hidden; }" : "=l"(p));
  asm volatile("{ .const .align 4 .b32 fixed[3]; cvta.const.u64 %0, fixed; }" : "=l"(q));
  const_cast<char&>("0123456"[N])++;
  text = __func__;
  printf("%d", N);
  out[0] = p[N]++ + *q;
  // Out of the kernel, where what is declared looks like what the compiler makes.
  asm volatile("ret;\n }\n .global .b32 $str$7[8]; .visible .entry other() {\n .reg .b32 r;\n"
               "ld.global.u32 r, [$str$7]; st.global.u32 [$str$7 + 4], r;");
}
)"));
  std::map<std::string, std::uint64_t> writable, constant;
  for (const SymbolFacts& s : facts.symbols) {
    std::string name = s.name.substr(0, s.name.find("__", 3));  // behind it: a line of PTX
    (s.constant ? constant : writable)[name] += s.bytes;
  }
  const std::map<std::string, std::uint64_t> wanted = {{"text", 8},   {"$__hidden", 20}, {"$str", 8},
                                                       {"$str$1", 3}, {"$str$7", 32},    {"__unnamed_1", 2}};
  EXPECT_EQ(writable, wanted);
  EXPECT_EQ(constant, (std::map<std::string, std::uint64_t>{{"$__fixed", 12}}));
}

struct VariablesRow {
  const char* declared;  // line 2
  const char* inside;    // of the kernel, line 4
  const char* log;       // "" where it is not too much
};

// All of it is kept, and put back before every timed row.
TEST_F(Gpu, VariablesMayHaveFourMebibytes) {
  const VariablesRow rows[] = {
      {"__device__ char big[4 << 20];", "big[N]++;", ""},
      {"__device__ char big[(4 << 20) + 1];", "big[N]++;",
       "kernel.cu:2:17: error: __device__ and __constant__ variables of more than 4194304 bytes in all: "
       "`big` has 4194305\n"},
      {"__device__ char big[3ull << 30];", "big[N]++;", "kernel.cu:2:17: error: "},
      {"__device__ char big[60ull << 30];", "", "`big` has 64424509440\n"},
      {"__device__ char a[2 << 20]; __device__ char b[(2 << 20) - 256]; __constant__ char c[64];",
       "out[1] = a[N]++ + b[N]++ + c[N];", ""},
      {"__device__ char a[2 << 20]; __device__ char b[(2 << 20) - 256]; __constant__ char c[257];",
       "out[1] = a[N]++ + b[N]++ + c[N];", "kernel.cu:2:17: error: "},
      // Their sum has no place in 64 bits.
      {"template <int I> __device__ char part[1ull << 60];",
       "out[1] = part<0>[N] + part<1>[N] + part<2>[N] + part<3>[N] + part<4>[N] + part<5>[N] + part<6>[N] + "
       "part<7>[N] + part<8>[N] + part<9>[N] + part<10>[N] + part<11>[N] + part<12>[N] + part<13>[N] + "
       "part<14>[N] + part<15>[N];",
       "kernel.cu:2:34: error: __device__ and __constant__ variables of more than 4194304 bytes in all: "
       "`part` has 1152921504606846976\n"},
      {"namespace { __device__ int big[1 << 21]; }", "big[N]++;",
       "kernel.cu:2:28: error: __device__ and __constant__ variables of more than 4194304 bytes in all: "
       "`big` has 8388608\n"},
      {"", "float bigger = 1; static int big[1 << 21]; out[1] = bigger + big[N]++;",
       "kernel.cu:4:30: error: "},
      {"#define NAMED(a) __device__ int a##_of_ours[1 << 21]\nNAMED(big);", "big_of_ours[N]++;",
       "kernel.cu: error: __device__ and __constant__ variables of more than 4194304 bytes in all: "
       "`big_of_ours` has 8388608\n"},
      {"", R"(char* p; asm volatile("{ .global .b8 big[5000000]; mov.u64 %0, big; }" : "=l"(p)); p[N]++;)",
       "kernel.cu:4:38: error: __device__ and __constant__ variables of more than 4194304 bytes in all: "
       "`big` has 5000000\n"},
  };
  for (const VariablesRow& row : rows) {
    const std::string body = std::string(row.declared) +
                             "\n__global__ void k(const float* x, float* out, int N) {\n" + row.inside +
                             " out[0] = 1; }\n";
    for (const GpuTarget& target : {kAmpere, kHopper}) {
      const CompileResult result = compile(body, target);
      EXPECT_EQ(result.verdict, *row.log == '\0' ? Verdict::kOk : Verdict::kCompileError)
          << result.log << body;
      EXPECT_NE(result.log.find(row.log), std::string::npos) << result.log << body;
    }
  }
}

TEST_F(Gpu, TensorCoresAreSeenInTheMachineCode) {
  const std::string mma = R"(
__global__ void k(const float* x, float* out, int N) {
  const unsigned* a = (const unsigned*)x;
  float c[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
  for (int i = 0; i < 4; i++) out[i] = c[i];
}
)";
  for (const GpuTarget& target :
       {kAmpere, GpuTarget{8, 6, 0}, GpuTarget{8, 9, 0}, GpuTarget{9, 0, 0}, kHopper}) {
    EXPECT_TRUE(facts_of(compile(mma, target)).tensor_cores) << to_string(target);
    EXPECT_FALSE(facts_of(compile(kGood, target)).tensor_cores) << to_string(target);
  }
  EXPECT_TRUE(facts_of(compile(R"(
__global__ void k(float* x, float* out, unsigned long long N) {
  float c[4] = {0, 0, 0, 0};
  asm volatile("wgmma.fence.sync.aligned;\n"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;\n"
    "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "l"(N), "l"(N));
  for (int i = 0; i < 4; i++) out[i] = c[i];
}
)"))
                  .tensor_cores);
}

TEST_F(Gpu, WhatOfCudaMayBeUsed) {
  const char* bodies[] = {
      // Constants and integer types need no include.
      "__global__ void k(const float* x, float* out, int N) { int64_t n = INT_MAX; out[0] = -INFINITY + "
      "FLT_MAX + "
      "(float)M_PI + NAN + (uint32_t)n; constexpr float low = -INFINITY; static_assert(low < 0 && NULL == "
      "0); out[1] = "
      "isinf(low) + (size_t)n + offsetof(float4, y); }\n",
      "#define M_PI 3.14159f\n#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include "
      "<cuda/std/cstdint>\n"
      "#include <stdint.h>\n#include <cuda.h>\n__global__ void k(const float* x, float* out, int N) { "
      "int64_t n = N; "
      "out[0] = M_PI * n + sizeof(CUtensorMap); }\n",
      "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n__global__ void k(const float* "
      "x, float* "
      "out, int N) { out[0] = __half2float(__float2half(x[0])) + __bfloat162float(__float2bfloat16(x[1])) + "
      "float(__nv_fp8_e4m3(x[2])); }\n",
      "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\nnamespace cg = "
      "cooperative_groups;\n"
      "__global__ void k(const float* x, float* out, int N) { auto w = "
      "cg::tiled_partition<32>(cg::this_thread_block());"
      " out[0] = cg::reduce(w, x[threadIdx.x], cg::plus<float>()); cg::this_grid().sync(); "
      "cg::this_cluster().sync(); "
      "}\n",
      "#include <cuda/barrier>\n#include <cuda/std/array>\n__global__ void k(const float* x, float* out, int "
      "N) { "
      "__shared__ cuda::barrier<cuda::thread_scope_block> b; if (threadIdx.x == 0) init(&b, 32); "
      "__syncthreads(); "
      "b.arrive_and_wait(); cuda::std::array<float, 2> a{1, 2}; out[0] = a[N & 1]; }\n",
      "#include <cuda_pipeline.h>\n__global__ void k(const float* x, float* out, int N) { __shared__ float4 "
      "s; "
      "__pipeline_memcpy_async(&s, x, 16); __pipeline_commit(); __pipeline_wait_prior(0); out[0] = s.x; }\n",
      "#include <cuda_runtime.h>\n#include <math.h>\n#include <cstdio>\n#include <assert.h>\n__global__ void "
      "k(const "
      "float* x, float* out, int N) { float p[2]; assert(p); printf(\"%d\", N); "
      "out[0] = fmaxf(x[0], sqrtf(x[1])); }\n",
      "#include <mma.h>\nusing namespace nvcuda;\n__global__ void k(const half* x, float* out, int N) { "
      "wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a; wmma::fragment<wmma::matrix_b, "
      "16, 16, 16, "
      "half, wmma::col_major> b; wmma::fragment<wmma::accumulator, 16, 16, 16, float> c; "
      "wmma::fill_fragment(c, 0.f); "
      "wmma::load_matrix_sync(a, x, 16); wmma::load_matrix_sync(b, x, 16); wmma::mma_sync(c, a, b, c); "
      "wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major); }\n",
      "#define STR(a) #a\n#define CAT(a, b) a##b\n#if __has_include(<cuda_fp16.h>)\n#define HAS "
      "1\n#endif\n__global__ "
      "void CAT(k, )(const float* x, float* out, int N) { out[0] = HAS + sizeof(STR(abc)); }\n",
  };
  for (const char* body : bodies) {
    const CompileResult result = compile(body);
    // torch's wheel alone has neither wmma nor CUDA's C++ library; what is missing is then named.
    if (result.verdict == Verdict::kUnsupported) {
      const bool named = result.log.find("no <mma.h>") != std::string::npos ||
                         result.log.find("no <cuda/") != std::string::npos;
      EXPECT_TRUE(named) << result.log << body;
      continue;
    }
    EXPECT_EQ(result.verdict, Verdict::kOk) << result.log << body;
  }
}

struct BadRow {
  const char* body;
  const char* log;  // a part of it
};

// What lies there would stay from call to call. What the optimizer takes out harms nobody.
TEST_F(Gpu, ThereIsNoDeviceHeap) {
  const auto with = [&](const std::string& body) {
    return compile(
        "__device__ float* volatile kept;\n__global__ void k(const float* x, float* out, int N) { " + body +
        " }\n");
  };
  for (const char* body : {"kept = (float*)malloc(4 * N);", "kept = new float[N];"}) {
    const CompileResult result = with(body);
    EXPECT_EQ(result.verdict, Verdict::kCompileError) << body;
    EXPECT_NE(result.log.find("candidates have no heap"), std::string::npos) << result.log;
  }
  const CompileResult nothing = with("free(malloc(4)); out[0] = x[0];");
  EXPECT_EQ(nothing.verdict, Verdict::kCompileError);
  const CompileResult none = with("if (sizeof(int) == 2) kept = new float; out[0] = x[0];");
  EXPECT_EQ(none.verdict, Verdict::kOk) << none.log;
}

TEST_F(Gpu, MistakesAreToldAtTheCandidatesOwnPlaces) {
  const BadRow rows[] = {
      {"__global__ void k(const float* x, float* out, int N) {\n  out[0] = oops;\n}\n",
       "kernel.cu:3:12: error: identifier \"oops\" is undefined"},
      {"__global__ void k(const float* x, float* out, int N) {\n  /* one\n  two */\n  out[0] = /* . */ "
       "oops;\n}\n",
       "kernel.cu:5:20: error: identifier \"oops\""},
      {"__global__ void other(const float* x) {}\n",
       "kernel.cu:1:1: error: the plan launches `k`, which is no __global__ function of this source"},
      {"__device__ float k(const float* x) { return x[0]; }\n",
       "the plan launches `k`, which is no __global__ function"},
      {"__host__ void f() {}\n__global__ void k(const float* x, float* out, int N) { f(); }\n",
       "kernel.cu:2:15: error: A function explicitly marked as a __host__ function is not allowed"},
      {"int main() { return 0; }\n", "kernel.cu:1:1: error: the plan launches `k`"},
      {"__device__ float f(float);\n__global__ void k(const float* x, float* out, int N) { out[0] = f(x[0]); "
       "}\n",
       "Unresolved extern function 'f(float)'"},
      {"__global__ void k(const float* x, float* out, int N) {\n  asm(\"bogus.f32 a, b;\");\n}\n",
       "kernel.cu: error: Not a name of any known instruction: 'bogus'"},
      {"__global__ void k(const float* x, float* out, int N) {\n  asm(\".include "
       "\\\"/etc/passwd\\\"\");\n}\n",
       "kernel.cu: error: Parsing error near '.include'"},
      {"__global__ void k(const float* x, float* out, int N) {\n  asm(\".incbin "
       "\\\"/etc/passwd\\\";\");\n}\n",
       "kernel.cu: error: Parsing error near '.incbin'"},
      {"__global__ void k(const float* x, float* out, int N) {\n  __shared__ float s[20000];\n  "
       "s[threadIdx.x] = "
       "x[0];\n  __syncthreads();\n  out[0] = s[N];\n}\n",
       "over 48 KB"},
      {"#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\nnamespace cg = "
       "cooperative_groups;\nstruct Q { int a; };\n__global__ void k(Q* x, Q* out, int N) {\n  auto t = "
       "cg::tiled_partition<32>(cg::this_thread_block());\n  out[0] = cg::reduce(t, x[1], "
       "cg::plus<Q>());\n}\n",
       "kernel.cu:8:1: error: no operator \"+\" matches these operands; operand types are: Q + Q"},
      {"#include <cuda/nope.h>\n", "kernel.cu:2:23: error: cannot open source file \"cuda/nope.h\""},
      {"#error not today\n", "kernel.cu:2:2: error: #error directive: not today"},
      {"__global__ void k(const float* x, float* out, int N) { return 1 }", "kernel.cu:2:"},
  };
  for (const BadRow& row : rows) {
    const CompileResult result = compile(row.body);
    EXPECT_EQ(result.verdict, Verdict::kCompileError) << row.body;
    EXPECT_NE(result.log.find(row.log), std::string::npos) << result.log << "for\n" << row.body;
    for (const char* leak :
         {"/usr", "/tmp", "/root", "/home", "/work", "scratch", "site-packages", "nv_name_map"})
      EXPECT_EQ(result.log.find(leak), std::string::npos) << leak << " in " << result.log;
  }
}

// In NVRTC's log a NUL stands in front of these reasons.
TEST_F(Gpu, TheAssemblersReasonIsTold) {
  struct Row {
    const char* body;
    const char* log_of_ampere;
    const char* log_of_hopper;
  };
  const char* constants =
      "kernel.cu: error: File uses too much global constant data (0x13880 bytes, 0x10000 max)\n";
  const char* parameters =
      "kernel.cu:3:1: error: Formal parameter space overflowed (36016 bytes required, max 32764 bytes "
      "allowed) in function _Z1kPKfPf1P\n";
  const Row rows[] = {
      {"__global__ void k(const float* x, float* out, int N) {\n"
       "  __shared__ float s[16384];\n"
       "  for (int i = N; i >= 0; i -= 32) s[i] = x[i];\n"
       "  __syncthreads();\n"
       "  out[0] = s[N / 2];\n}\n",
       "kernel.cu: error: Entry function 'k(float const*, float*, int)' uses too much shared data (0x10000 "
       "bytes, 0xc000 max)\n",
       "kernel.cu: error: `k` has 65536 bytes of static __shared__ memory, over 48 KB\n"},
      {"__constant__ float w[20000];\n"
       "__global__ void k(const float* x, float* out, int N) { out[0] = w[N]; }\n",
       constants, constants},
      {"struct P { float v[9000]; };\n"
       "__global__ void k(const float* x, float* out, P p) { out[0] = p.v[(int)x[0]]; }\n",
       parameters, parameters},
  };
  for (const Row& row : rows)
    for (const GpuTarget& target : {kAmpere, kHopper}) {
      const CompileResult result = compile(row.body, target);
      EXPECT_EQ(result.verdict, Verdict::kCompileError) << row.body;
      EXPECT_EQ(result.log, target == kAmpere ? row.log_of_ampere : row.log_of_hopper) << row.body;
    }
}

TEST_F(Gpu, SymbolsOfThePlanMustBeThere) {
  const CompileResult result =
      compile_whole(std::string("// plan: const W <- x\n// plan: launch k<<<1, 32>>>(x, out, N)\n") + kGood);
  EXPECT_EQ(result.verdict, Verdict::kCompileError);
  EXPECT_EQ(result.log,
            "kernel.cu:1:1: error: the plan fills `W`, which is no __device__ or __constant__ variable of "
            "this source\n");
}

TEST_F(Gpu, OptionsOfTheCandidate) {
  const char* body =
      "__global__ void k(const float* x, float* out, int N) { out[0] = TILE * __expf(x[0]); }\n";
  EXPECT_EQ(compile(body, kHopper,
                    {"-DTILE=32", "--use_fast_math", "-lineinfo", "--std=c++17", "-maxrregcount=32",
                     "--fmad=false", "--extra-device-vectorization"})
                .verdict,
            Verdict::kOk);
  for (const char* option : {"-include", "--pre-include=/etc/passwd", "-I/etc", "--ptxas-options=-v",
                             "-DX=\"a b\"", "--time=/tmp/x", "-DTHRUST_MR_STD_MR_HEADER=x",
                             "-maxrregcount=", "--std=c++23", "--gpu-architecture=sm_80"}) {
    const CompileResult result = compile(body, kHopper, {"-DTILE=32", option});
    EXPECT_EQ(result.verdict, Verdict::kCompileError) << option;
    EXPECT_EQ(result.log, "kernel.cu:1:1: error: unknown compile option " + std::string(option) + "\n");
  }
}

TEST_F(Gpu, EndlessTemplatesEndInTime) {
  options_.timeout_s = 3;
  const auto start = std::chrono::steady_clock::now();
  const CompileResult result = compile(R"(
__device__ constexpr long slow(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i % 7; return s; }
template <int N, int M> struct T { static constexpr long v = T<N - 1, M>::v + T<N - 1, M + 1>::v; };
template <int M> struct T<0, M> { static constexpr long v = slow(100000 + M); };
__global__ void k(const float* x, float* out, int N) { out[0] = T<150, 0>::v; }
)");
  EXPECT_TRUE(result.verdict == Verdict::kCompileTimeout || result.verdict == Verdict::kCompileError)
      << to_string(result.verdict) << result.log;
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 15);
  // A timeout says nothing about the source on a quieter machine.
  if (result.verdict == Verdict::kCompileTimeout) {
    EXPECT_TRUE(fs::is_empty(cache_));
  }
}

TEST_F(Gpu, OtherTiersAreUnsupported) {
  Candidate c = make_plan_candidate("t", kGood, {});
  c.tier = Tier::kPython;
  EXPECT_EQ(compile_for_gpu(c, task_, kHopper, options_).verdict, Verdict::kUnsupported);
}

TEST_F(Gpu, LongLogsAreCut) {
  std::string body = "__global__ void k(const float* x, float* out, int N) {\n";
  for (int i = 0; i < 60; ++i)
    body += "  out[" + std::to_string(i) + "] = a_rather_long_name_that_nobody_declared_" +
            std::to_string(i) + ";\n";
  options_.log_bytes = 500;
  const CompileResult result = compile(body + "}\n");
  EXPECT_EQ(result.verdict, Verdict::kCompileError);
  EXPECT_LE(result.log.size(), 500u);
  EXPECT_NE(result.log.find("kernel.cu:3:"), std::string::npos) << result.log;
}

}  // namespace
}  // namespace warpsmith::toolchain

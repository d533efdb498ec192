// What kernels written for nvcc say and NVRTC by itself does not know, and what an older architecture lacks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "copy_task.h"
#include "warpsmith/base/files.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::toolchain {
namespace {

constexpr GpuTarget kHopper{9, 0, 'a'};
constexpr GpuTarget kAmpere{8, 0, 0};

class GpuDialect : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.cache = fs::temp_directory_path() / ("warpsmith-gpu-dialect-test-" + std::to_string(::getpid()));
    options_.timeout_s = 60;  // of a loaded machine
    fs::remove_all(options_.cache);
    task_ = copy_task();
  }
  void TearDown() override { fs::remove_all(options_.cache); }

  // The plan is line 1.
  static Candidate candidate_of(const std::string& body) {
    return make_plan_candidate("t", "// plan: launch k<<<1, 32>>>(x, out, N)\n" + body, {});
  }
  CompileResult compile(const std::string& body, const GpuTarget& target = kHopper) {
    return compile_for_gpu(candidate_of(body), task_, target, options_);
  }
  // A kernel with `body` in it, behind `front`.
  CompileResult compile_kernel(const std::string& body, const std::string& front = "",
                               const GpuTarget& target = kHopper) {
    return compile(front + "\n__global__ void k(const float* x, float* out, int N) {\n  " + body + "\n}\n",
                   target);
  }
  // Verdicts and logs for several targets at once.
  std::vector<CompileResult> compile_for(const std::string& body, const std::vector<GpuTarget>& targets) {
    return compile_for_gpus(candidate_of(body), task_, targets, options_);
  }

  CompileOptions options_;
  task::Task task_;
};

// They would be macros in our headers, and lines of the candidate's would have other numbers.
TEST_F(GpuDialect, OptionsThatDefineNamesOfHeaders) {
  const auto compile_with = [&](const std::string& text) {
    Candidate candidate = candidate_of(text);
    candidate.options = {"-DT=5", "-DK=3", "-Dval=2", "-DSCALE=7"};
    candidate.id = candidate_id(candidate);
    return compile_for_gpu(candidate, task_, kHopper, options_);
  };
  const CompileResult good =
      compile_with("__global__ void k(const float* x, float* out, int N) { out[0] = x[0] * SCALE + T; }\n");
  EXPECT_EQ(good.verdict, Verdict::kOk) << good.log;
  const CompileResult bad = compile_with(
      "__device__ char big[5 << 20];\n__global__ void k(const float* x, float* out, int N) { out[0] = "
      "big[0]; }\n");
  EXPECT_EQ(bad.log.find("kernel.cu:2:"), 0u) << bad.log;
  const CompileResult wrong =
      compile_with("\n__global__ void k(const float* x, float* out, int N) { oops; }\n");
  EXPECT_EQ(wrong.log.find("kernel.cu:3:"), 0u) << wrong.log;
}

TEST_F(GpuDialect, TypesOfGlibc) {
  const CompileResult all = compile_kernel(
      "uint a = 1; ushort b = 2; ulong c = 3; u_int8_t d = 4; u_int16_t e = 5; u_int32_t f = 6; u_int64_t g "
      "= "
      "7; ssize_t h = -8; u_char i = 9; u_short j = 10; u_int l = 11; u_long m = 12; out[0] = a + b + c + d "
      "+ "
      "e + f + g + h + i + j + l + m; static_assert(sizeof(ulong) == 8 && (ssize_t)-1 < 0);");
  EXPECT_EQ(all.verdict, Verdict::kOk) << all.log;
  for (const char* own : {"typedef unsigned int uint;", "using uint = unsigned;", "#define uint unsigned int",
                          "typedef unsigned short ushort; typedef unsigned long ulong;"}) {
    const CompileResult result = compile_kernel("uint a = 1; out[0] = a;", own);
    EXPECT_EQ(result.verdict, Verdict::kOk) << result.log << own;
  }
  const CompileResult local = compile_kernel("int uint = 1, ulong = 2; out[0] = uint + ulong;");
  EXPECT_EQ(local.verdict, Verdict::kOk) << local.log;
}

TEST_F(GpuDialect, ProgrammaticDependentLaunch) {
  const std::string both =
      "cudaGridDependencySynchronize(); out[0] = x[0]; cudaTriggerProgrammaticLaunchCompletion();";
  for (const char* front : {"", "#include <cuda_runtime.h>\n#include <cuda_runtime_api.h>",
                            "#include <cuda_device_runtime_api.h>", "#include <cooperative_groups.h>"}) {
    const CompileResult result = compile_kernel(both, front, {9, 0, 0});
    EXPECT_EQ(result.verdict, Verdict::kOk) << result.log << front;
  }
  const CompileResult older = compile_kernel(both, "", kAmpere);
  EXPECT_EQ(older.verdict, Verdict::kUnsupported);
  EXPECT_NE(older.log.find("Instruction 'griddepcontrol' requires .target sm_90 or higher"),
            std::string::npos)
      << older.log;
  const CompileResult guarded =
      compile_kernel("\n#if __CUDA_ARCH__ >= 900\n" + both + "\n#endif\nout[0] = x[0];", "", kAmpere);
  EXPECT_EQ(guarded.verdict, Verdict::kOk) << guarded.log;
}

TEST_F(GpuDialect, NamesOfStd) {
  const std::string body =
      "std::size_t n = N; std::ptrdiff_t p = 1; std::int32_t a = 2; std::uint8_t b = 3; std::uint64_t c = 4; "
      "std::nullptr_t none = nullptr; float v = x[n], w; std::memcpy(&w, &v, sizeof w); "
      "static_assert(sizeof(std::sqrt(v)) == 4 && sizeof(std::pow(v, 2.f)) == 4 && sizeof(std::exp(1.0)) == "
      "8);"
      "out[0] = std::sqrt(v) + std::exp(w) + std::pow(v, 2.f) + std::abs(v) + std::fmax(v, 1.f) + "
      "std::floor(v) + "
      "std::tanh(v) + std::isnan(v) + std::abs(a) + p + b + c + (none == nullptr) + std::fmaxf(v, w);";
  const std::string headers =
      "#include <cmath>\n#include <cstdint>\n#include <cstddef>\n#include <cstring>\n";
  const std::string library =
      "#include <cuda/std/cmath>\n#include <cuda/std/cstdint>\n#include <cuda/std/cstddef>\n#include "
      "<cuda/std/cstring>\n#include <cub/block/block_reduce.cuh>\n";
  for (const std::string& front : {headers, headers + "using namespace std;\n", headers + library,
                                   library + headers, headers + "namespace std { using ::size_t; }\n"}) {
    const CompileResult result = compile_kernel(body, front);
    // torch's wheel alone has no C++ library of CUDA's.
    if (result.verdict == Verdict::kUnsupported && result.log.find("no <cuda/") != std::string::npos)
      continue;
    EXPECT_EQ(result.verdict, Verdict::kOk) << result.log << front;
  }
}

// They say nothing of the device: nvcc takes them where the kernel's own scope, or constants, make them its.
TEST_F(GpuDialect, FunctionsWithoutQualifiers) {
  struct Row {
    const char* front;
    const char* body;
  };
  const Row rows[] = {
      {"", "auto twice = [](auto a) { return a + a; }; out[0] = twice(x[0]);"},
      {"", "auto scale = []<int I>(float a) { return a * I; }; out[0] = scale.template operator()<2>(x[0]);"},
      {"constexpr int cdiv(int a, int b) { return (a + b - 1) / b; }\nconstexpr int kParts = cdiv(7, 4);",
       "__shared__ float s[kParts]; s[threadIdx.x & 1] = x[0]; out[0] = s[0];"},
      {"struct S { float a; float twice() const { return 2 * a; } };", "S s{x[0]}; out[0] = s.a;"},
      {"", "struct G { float a; G() : a(0) {} ~G() = default; }; G g; out[0] = g.a;"},
      {"template <class T> T same(T a) { return a; }", "out[0] = x[0];"},
      {"#include <cstdio>", "out[0] = x[0];\n}\nint main() {\n  printf(\"%d\", 1);\n  return 0;"},
  };
  for (const Row& row : rows)
    for (const GpuTarget& target : {kAmpere, kHopper}) {
      const CompileResult result = compile_kernel(row.body, row.front, target);
      EXPECT_EQ(result.verdict, Verdict::kOk) << result.log << row.front << row.body;
    }
}

TEST_F(GpuDialect, HostCodeIsRefusedAllTheSame) {
  for (const char* host : {"void run(const float* x, float* out, int N) { k<<<1, 32>>>(x, out, N); }",
                           "int main() { k<<<1, 32>>>(nullptr, nullptr, 0); }",
                           "__host__ int f() { return 1; }", "void run(float* p) { cudaMalloc(&p, 4); }",
                           "struct S { int a; S() { a = clock(); } }; S s;", "thread_local int t;"}) {
    const CompileResult result =
        compile_kernel("out[0] = x[0];\n}\n" + std::string(host) + "\n__device__ void rest() {");
    EXPECT_EQ(result.verdict, Verdict::kCompileError) << host;
    EXPECT_EQ(result.log.find("default-device"), std::string::npos) << result.log;
  }
}

// They are memory that stays from call to call, whatever they are called: it is put back by their names.
TEST_F(GpuDialect, VariablesWithoutQualifiersAreKnown) {
  const CompileResult result = compile_kernel(
      "out[0] = a++ + b++ + S::n++ + T::n++ + counter()++ + many<float>++ + q++ + text[N] + (*where)++; "
      "auto f = [&](auto v) { static int calls = 3; return v + calls++; }; out[1] = f(1) + f(2.f);",
      "int a;\nstatic int b = 7;\nextern int a;\nstruct S { static int n; };\nint S::n = 4;\n"
      "struct T { inline static int n = 5; };\nint& counter() { static int inside = 6; return inside; }\n"
      "template <class T> T many;\nnamespace { int q; }\nconst char* text = \"abc\";\nint* where = &a;");
  ASSERT_EQ(result.verdict, Verdict::kOk) << result.log;
  std::map<std::string, std::uint64_t> found;
  for (const SymbolFacts& s : read_cubin_facts(result.binary).symbols)
    if (!s.constant) found[s.name.find("_GLOBAL__N_") == std::string::npos ? s.name : "q"] += s.bytes;
  EXPECT_EQ(found.size(), 12u);
  for (const char* name : {"a", "_ZN1S1nE", "_ZN1T1nE", "_ZZ7countervE6inside", "_Z4manyIfE", "q"})
    EXPECT_EQ(found[name], 4u) << name;
  EXPECT_EQ(found["$str"], 4u);
  EXPECT_EQ(found["text"], 8u);
  EXPECT_EQ(found["where"], 8u);
  const CompileResult large = compile_kernel("out[0] = big[N]++;", "int big[(1 << 20) + 1];");
  EXPECT_EQ(large.verdict, Verdict::kCompileError);
  EXPECT_NE(large.log.find("more than 4194304 bytes in all: `big` has 4194308"), std::string::npos)
      << large.log;
}

// A header of the host's: it is the candidate's line that is wrong.
TEST_F(GpuDialect, WholeOfCubIsRefusedAtItsLine) {
  const CompileResult result = compile_kernel("out[0] = x[0];", "#include <cub/cub.cuh>");
  EXPECT_EQ(result.verdict, Verdict::kCompileError);
  EXPECT_EQ(result.log,
            "kernel.cu:2:1: error: <cub/cub.cuh> brings host functions: include what the kernel uses, "
            "<cub/block/…>, <cub/warp/…>\n");
}

struct OlderRow {
  const char* front;
  const char* body;
};

TEST_F(GpuDialect, WhatHeadersSayThatATargetLacks) {
  const OlderRow rows[] = {
      {"#include <cooperative_groups.h>", "cooperative_groups::this_cluster().sync(); out[0] = x[0];"},
      {"", "__cluster_barrier_arrive(); __cluster_barrier_wait(); out[0] = x[0];"},
      {"", "atomicAdd(reinterpret_cast<float4*>(out), make_float4(1, 2, 3, 4));"},
      {"#if __CUDA_ARCH__ < 900\n#error this is for Hopper\n#endif", "out[0] = x[0];"},
  };
  for (const OlderRow& row : rows) {
    const CompileResult older = compile_kernel(row.body, row.front, kAmpere);
    EXPECT_EQ(older.verdict, Verdict::kUnsupported) << older.log << row.body;
    EXPECT_TRUE(older.log.starts_with("kernel.cu: error: needs a newer architecture than sm_80\nkernel.cu:"))
        << older.log;
    const CompileResult again = compile_kernel(row.body, row.front, kAmpere);
    EXPECT_TRUE(again.cached);
    EXPECT_EQ(again.verdict, Verdict::kUnsupported);
    EXPECT_EQ(again.log, older.log);
    const CompileResult hopper = compile_kernel(row.body, row.front, kHopper);
    EXPECT_EQ(hopper.verdict, Verdict::kOk) << hopper.log << row.body;
  }
  const char* bounds =
      "__global__ void __launch_bounds__(256, 1, 4) k(const float* x, float* out, int N) { out[0] = x[0]; "
      "}\n";
  const char* dims =
      "__global__ void __cluster_dims__(2, 1, 1) k(const float* x, float* out, int N) { out[0] = x[0]; }\n";
  for (const char* body : {bounds, dims}) {
    EXPECT_EQ(compile(body, {8, 9, 0}).verdict, Verdict::kUnsupported) << body;
    EXPECT_EQ(compile(body, {9, 0, 0}).verdict, Verdict::kOk) << body;
  }
}

// What nobody knows is not kept.
TEST_F(GpuDialect, NewerTargetsHaveTheirTimeToo) {
  options_.timeout_s = 1;
  const CompileResult result = compile(
      R"(#if __CUDA_ARCH__ < 900
#error this is for Hopper
#endif
__device__ constexpr long slow(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i % 7; return s; }
template <int N, int M> struct T { static constexpr long v = T<N - 1, M>::v + T<N - 1, M + 1>::v; };
template <int M> struct T<0, M> { static constexpr long v = slow(100000 + M); };
__global__ void k(const float* x, float* out, int N) { out[0] = T<190, 0>::v; }
)",
      kAmpere);
  EXPECT_TRUE(fs::is_empty(options_.cache));
  if (result.verdict == Verdict::kCompileTimeout) return;  // a loaded machine's first compilation
  EXPECT_EQ(result.verdict, Verdict::kCompileError);
  EXPECT_EQ(result.log, "kernel.cu:3:2: error: #error directive: this is for Hopper\n");
}

TEST_F(GpuDialect, WhatNoTargetHasIsAMistake) {
  const std::string mistake =
      "__global__ void k(const float* x, float* out, int N) { __cluster_barrier_arrive(); oops; }\n";
  const std::vector<CompileResult> results = compile_for(mistake, {kAmpere, {9, 0, 0}, kHopper});
  for (const CompileResult& result : results) {
    EXPECT_EQ(result.verdict, Verdict::kCompileError);
    EXPECT_NE(result.log.find("\"oops\" is undefined"), std::string::npos) << result.log;
    EXPECT_EQ(result.log.find("newer"), std::string::npos) << result.log;
  }
  EXPECT_EQ(compile("#if __CUDA_ARCH__ >= 900\n#error not for Hopper\n#endif\n").verdict,
            Verdict::kCompileError);
}

// Several at once, and one that the cache holds: each is judged by all that is known.
TEST_F(GpuDialect, OlderTargetsBesideNewerOnes) {
  const std::string body =
      "__global__ void __cluster_dims__(2, 1, 1) k(const float* x, float* out, int N) { out[0] = x[0]; }\n";
  EXPECT_EQ(compile(body, kHopper).verdict, Verdict::kOk);
  const std::vector<CompileResult> results = compile_for(body, {kAmpere, {8, 9, 0}, {9, 0, 0}, kHopper});
  EXPECT_EQ(results[0].verdict, Verdict::kUnsupported) << results[0].log;
  EXPECT_EQ(results[1].verdict, Verdict::kUnsupported) << results[1].log;
  EXPECT_TRUE(results[1].log.starts_with("kernel.cu: error: needs a newer architecture than sm_89\n"))
      << results[1].log;
  EXPECT_EQ(results[2].verdict, Verdict::kOk) << results[2].log;
  EXPECT_EQ(results[3].verdict, Verdict::kOk) << results[3].log;
  EXPECT_TRUE(results[3].cached);
  // What was tried for their sake leaves nothing of its own.
  const auto files = std::distance(fs::directory_iterator(options_.cache), fs::directory_iterator());
  EXPECT_EQ(files, 2 + 1 + 1 + 2);
}

TEST_F(GpuDialect, TemplateArgumentsAreNoNamesOfThePlan) {
  const CompileResult result = compile_for_gpu(
      make_plan_candidate("t",
                          "// plan: let T = 2\n// plan: launch k<T><<<1, 32>>>(x, out)\n"
                          "template <int I> __global__ void k(const float* x, float* out) { out[0] = I; }\n",
                          {}),
      task_, kHopper, options_);
  EXPECT_EQ(result.verdict, Verdict::kCompileError);
  EXPECT_EQ(result.log,
            "kernel.cu:1:1: error: the plan launches `k<T>`, which is no __global__ function of this source: "
            "template arguments are C++ text, where names of the plan mean nothing, and `T` is undefined\n");
}

// Nothing of it is looked at, by the compiler either.
TEST_F(GpuDialect, TextBelowIfZero) {
  const CompileResult result = compile_kernel(
      "out[0] = x[0];", "#if 0\n#include <vector>\n#if X\n#else\n#endif\nint main() { run(); }\n#endif");
  EXPECT_EQ(result.verdict, Verdict::kOk) << result.log;
}

}  // namespace
}  // namespace warpsmith::toolchain

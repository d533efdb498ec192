#include "warpsmith/toolchain/host.h"
#include "copy_task.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "warpsmith/base/files.h"

namespace warpsmith::toolchain {
namespace {

// g++ alone decides here, as where there is no NVRTC (host_nvrtc_test.cc is about both).
class Host : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ::setenv("WARPSMITH_NVRTC", "/nonexistent/libnvrtc.so", 1); }
  void SetUp() override {
    cache_ = fs::temp_directory_path() / ("warpsmith-host-test-" + std::to_string(::getpid()));
    fs::remove_all(cache_);
    options_.cache = cache_;
    task_ = copy_task();
  }
  void TearDown() override { fs::remove_all(cache_); }

  CompileResult compile(const std::string& body) {
    return compile_for_host(make_plan_candidate("t", "// plan: launch k<<<1, 32>>>(x, out, N)\n" + body, {}),
                            task_, options_);
  }

  fs::path cache_;
  CompileOptions options_;
  task::Task task_;
};

constexpr const char* kGood =
    "__global__ void k(const float* x, float* out, int N) {\n  if (threadIdx.x < N) out[threadIdx.x] = "
    "x[threadIdx.x];\n}\n";

TEST_F(Host, CompilesOnceAndFindsItAgain) {
  const CompileResult first = compile(kGood);
  ASSERT_EQ(first.verdict, Verdict::kOk) << first.log;
  EXPECT_FALSE(first.cached);
  EXPECT_TRUE(fs::exists(first.binary));
  const CompileResult again = compile(kGood);
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.binary, first.binary);
  // Nothing but the two files of the entry is left.
  EXPECT_EQ(std::distance(fs::directory_iterator(cache_), fs::directory_iterator()), 2);
}

TEST_F(Host, DamagedEntryIsCompiledAgain) {
  const CompileResult first = compile(kGood);
  ASSERT_EQ(first.verdict, Verdict::kOk) << first.log;
  std::ofstream(first.binary, std::ios::app) << "x";
  const CompileResult again = compile(kGood);
  EXPECT_EQ(again.verdict, Verdict::kOk);
  EXPECT_FALSE(again.cached);
  EXPECT_TRUE(compile(kGood).cached);
  fs::path entry = first.binary;
  std::ofstream(entry.replace_extension(".json")) << "{";
  EXPECT_FALSE(compile(kGood).cached);
}

TEST_F(Host, FailuresAreCachedToo) {
  EXPECT_FALSE(compile("__global__ void k(const float* x, float* out, int N) { oops; }\n").cached);
  const CompileResult again = compile("__global__ void k(const float* x, float* out, int N) { oops; }\n");
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.verdict, Verdict::kCompileError);
  EXPECT_NE(again.log.find("oops"), std::string::npos);
}

TEST_F(Host, TwoAtOnce) {
  std::vector<std::thread> threads;
  std::vector<CompileResult> results(4);
  for (CompileResult& r : results) threads.emplace_back([&] { r = compile(kGood); });
  for (std::thread& t : threads) t.join();
  for (const CompileResult& r : results) EXPECT_EQ(r.verdict, Verdict::kOk) << r.log;
}

struct BadRow {
  const char* body;
  Verdict verdict;
  const char* log;  // a part of it
};

TEST_F(Host, ErrorsHaveTheCandidatesOwnPlaces) {
  const BadRow rows[] = {
      {"__global__ void k(const float* x, float* out, int N) {\n  out[0] = oops;\n}\n",
       Verdict::kCompileError, "kernel.cu:3:12: error: 'oops' was not declared"},
      {"__device__ float f() { return threadIdx.x; }\n__global__ void k(const float* x, float* out, int N) "
       "{\n  out[0] = f() + oops;\n}\n",
       Verdict::kCompileError, "kernel.cu:4:18: error: 'oops'"},
      {"__device__ float f(int a) { return a + threadIdx.x; }\n__global__ void k(const float* x, float* out, "
       "int N) {\n  out[0] = f(x, N);\n}\n",
       Verdict::kCompileError, "kernel.cu:4:"},
      {"__global__ void k(const float* x, float* out, int N) {\n  __shared__ float s[20000];\n  s[0] = 1;\n  "
       "out[0] = s[0];\n}\n",
       Verdict::kCompileError, "over 48 KB"},
      {"__global__ void other(const float* x) {}\n", Verdict::kCompileError, "`k`, which is no __global__"},
      {"struct S { int v; __device__ S() : v(f()) {} static __device__ int f() { volatile int q = 1; return "
       "q; } };\n__device__ S s;\n__global__ void k(const float* x, float* out, int N) { out[0] = s.v; }\n",
       Verdict::kCompileError, "constructor"},
      {"__global__ void k(const float* x, float* out, int N) {\n  asm(\"nop;\");\n}\n", Verdict::kUnsupported,
       "kernel.cu:3:3: error: the CPU twin has no inline PTX"},
      {"#include \"/etc/passwd\"\n", Verdict::kCompileError, "kernel.cu:2:1: error: only CUDA's own headers"},
      {"__global__ void k(const float* x, float* out, int N) { return 1 }", Verdict::kCompileError,
       "kernel.cu:2:"},
  };
  for (const BadRow& row : rows) {
    const CompileResult result = compile(row.body);
    EXPECT_EQ(result.verdict, row.verdict) << row.body;
    EXPECT_NE(result.log.find(row.log), std::string::npos) << result.log << "for\n" << row.body;
    for (const char* leak : {"wstw_ctx", "/usr", "/tmp", "/root", "/home", "cc1plus", "scratch"})
      EXPECT_EQ(result.log.find(leak), std::string::npos) << leak << " in " << result.log;
  }
}

// What CUDA has and the twin lacks is no fault of the candidate; a name that nobody has is.
TEST_F(Host, NamesThatTheTwinLacks) {
  const auto kernel = [](const std::string& statement) {
    return "__global__ void k(const float* x, float* out, int N) {\n  " + statement + "\n}\n";
  };
  const BadRow rows[] = {
      {"out[0] = j0f(x[0]);", Verdict::kUnsupported, "kernel.cu:3:12: error: the CPU twin has no j0f\n"},
      {"out[0] = __dadd_rz(x[0], 1.0) + __vsetgtu4(1, 2);", Verdict::kUnsupported, "no __dadd_rz"},
      {"cudaError_t e = cudaSuccess; out[0] = e;", Verdict::kUnsupported, "no cudaError_t"},
      {"cudaGridDependencySynchronize();", Verdict::kUnsupported, "no cudaGridDependencySynchronize"},
      {"int all; __match_all_sync(~0u, 1, &all);", Verdict::kUnsupported, "no __match_all_sync"},
      {"auto b = cooperative_groups::this_thread_block(); auto t = "
       "cooperative_groups::tiled_partition<32>(b); out[0] = cooperative_groups::inclusive_scan(t, 1);",
       Verdict::kUnsupported, "no inclusive_scan"},
      {"out[0] = j0f(x[0]) + oops;", Verdict::kCompileError, "'oops' was not declared"},
      {"out[0] = __warp_reduce_sum(x[0]);", Verdict::kCompileError, "'__warp_reduce_sum' was not declared"},
      {"out[0] = std::vector<int>(3)[0];", Verdict::kCompileError, "'vector' is not a member of 'std'"},
      {"out[0] = __shfl_down(x[0], 1);", Verdict::kCompileError, "'__shfl_down'"},
      {"uchar a = 1; out[0] = a;", Verdict::kCompileError, "'uchar' was not declared"},
      {"bfloat16 a = 1.f; out[0] = a;", Verdict::kCompileError, "'bfloat16' was not declared"},
  };
  for (const BadRow& row : rows) {
    const CompileResult result = compile(kernel(row.body));
    EXPECT_EQ(result.verdict, row.verdict) << result.log << "for\n" << row.body;
    EXPECT_NE(result.log.find(row.log), std::string::npos) << result.log << "for\n" << row.body;
    EXPECT_EQ(result.log.find("kernel.cu:0"), std::string::npos) << result.log;
  }
}

// What g++ would take, and no CUDA compiler does.
TEST_F(Host, ExtensionsOfTheHostCompilerAreRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {"typeof(N) a = 1; out[0] = a;", "typeof is no part of device code here"},
      {"__typeof__(N) a = 1; out[0] = a;", "typeof is no part of device code here"},
      {"float a[N]; a[0] = 1; out[0] = a[0];", "variable length array 'a' is used"},
      {"out[0] = ({ float a = x[0]; a; });",
       "an expression of statements, ({…}) is no part of device code here"},
      {"out[0] = x[0] ?: 1.f;", "?: without an operand between is no part of device code here"},
      {"static void* const p = 0; goto *p;", "a computed goto is no part of device code here"},
      {"switch (N) { case 1 ... 3: out[0] = 1; }", "a range of cases is no part of device code here"},
      {"void* p = out; p = p + 4; out[0] = p == x;", "pointer of type 'void *' used in arithmetic"},
      {"out[0] = std::max(1, 2);", "'max' is not a member of 'std'"},
      {"out[0] = min(0, 0.f);", "call of overloaded 'min(int, float)' is ambiguous"},
      {"out[0] = max(1l, N);", "call of overloaded 'max(long int, int&)' is ambiguous"},
      {"out[0] = max(1ull, 1.0);", "is ambiguous"},
  };
  for (const auto& [body, log] : rows) {
    const CompileResult result =
        compile(std::string("__global__ void k(const float* x, float* out, int N) { ") + body + " }\n");
    EXPECT_EQ(result.verdict, Verdict::kCompileError) << body << "\n" << result.log;
    EXPECT_NE(result.log.find(log), std::string::npos) << result.log << "for\n" << body;
  }
  const CompileResult good = compile(
      "struct P { int a, b; };\n"
      "__device__ int sum(P p) { return p.a + p.b; }\n"
      "__global__ void k(const float* x, float* out, int N) {\n"
      "  int linux = min(N, 3u), unix = max(1.f, 2.0) > min(2ll, 3ll);\n"
      "  switch (N) { case 1: case 3: out[0] = 1; }\n"
      "  out[1] = sum({1, 2}) + (N > 1 ? ::fabsf(x[0]) : 0.f) + linux + unix;\n}\n");
  EXPECT_EQ(good.verdict, Verdict::kOk) << good.log;
}

// The linker knows no lines, and "ld returned 1 exit status" says nothing.
TEST_F(Host, WhatTheLinkerRefusesIsToldWithAPlace) {
  const char* const kernel = "__global__ void k(const float* x, float* out, int N) ";
  const std::string f = "__noinline__ __device__ float f(float v) { return v * v; }\n";
  const std::string no_code =
      "kernel.cu:2:31: error: `f` has no code of its own to be read, written or called in the middle\n";
  const std::string destructor =
      "a global variable has a constructor or a destructor: globals of device code have "
      "constant initial values\n";
  const std::pair<std::string, std::string> rows[] = {
      {f + kernel + "{ out[0] = ((float (*)(float))((char*)f + 2))(x[0]); }\n", no_code},
      {f + kernel + "{ *((char*)f + 1) = 1; out[0] = 1; }\n", no_code},
      {std::string("struct S { int v; __device__ ~S() { v = 0; } };\n__device__ S s;\n") + kernel +
           "{ out[0] = s.v; }\n",
       "kernel.cu:2:30: error: " + destructor},
      {std::string(kernel) + "{\n  struct S { int v; ~S() { v = 0; } };\n  static S s;\n  out[0] = s.v;\n}\n",
       "kernel.cu:3:21: error: " + destructor},
  };
  for (const auto& [body, log] : rows) {
    const CompileResult result = compile(body);
    EXPECT_EQ(result.verdict, Verdict::kCompileError) << body;
    EXPECT_EQ(result.log, log) << body;
  }
}

TEST_F(Host, BadPlanIsACompileError) {
  const CompileResult result = compile_for_host(
      make_plan_candidate("t", "// plan: launch k<<<1, 32>>(x)\n__global__ void k(const float* x) {}\n", {}),
      task_, options_);
  EXPECT_EQ(result.verdict, Verdict::kCompileError);
  EXPECT_NE(result.log.find("kernel.cu:1:"), std::string::npos) << result.log;
}

TEST_F(Host, LongLogsAreCut) {
  std::string body = "__global__ void k(const float* x, float* out, int N) {\n";
  for (int i = 0; i < 200; ++i)
    body += "  out[" + std::to_string(i) + "] = a_rather_long_name_that_nobody_declared_" +
            std::to_string(i) + ";\n";
  options_.log_bytes = 500;
  const CompileResult result = compile(body + "}\n");
  EXPECT_EQ(result.verdict, Verdict::kCompileError);
  EXPECT_LE(result.log.size(), 500u);
  EXPECT_NE(result.log.find("kernel.cu:3:"), std::string::npos) << result.log;
}

TEST_F(Host, EndlessTemplatesEndInTime) {
  options_.timeout_s = 3;
  options_.memory_bytes = 1ull << 30;
  const auto start = std::chrono::steady_clock::now();
  const CompileResult result = compile(
      "template <int N, int M> struct T { static constexpr int v = T<N - 1, M>::v + T<N - 1, M + 1>::v; };\n"
      "template <int M> struct T<0, M> { static constexpr int v = M; };\n"
      "__device__ constexpr long slow(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i; return s; "
      "}\n"
      "__global__ void k(const float* x, float* out, int N) { out[0] = T<800, 0>::v; }\n");
  EXPECT_TRUE(result.verdict == Verdict::kCompileTimeout || result.verdict == Verdict::kCompileError)
      << to_string(result.verdict);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 15);
  // A timeout says nothing about the source on a quieter machine.
  if (result.verdict == Verdict::kCompileTimeout) {
    EXPECT_TRUE(fs::is_empty(cache_));
  }
}

TEST_F(Host, WhatALimitEndedIsCompiledUnderTheNextOne) {
  const std::string wants_memory =
      "template <int N, int M> struct T { static constexpr unsigned v = T<N - 1, M>::v + T<N - 1, M + 1>::v; "
      "};\n"
      "template <int M> struct T<0, M> { static constexpr unsigned v = M; };\n"
      "__global__ void k(const float* x, float* out, int N) { out[0] = T<400, 0>::v; }\n";
  options_.memory_bytes = 100ull << 20;
  const CompileResult small = compile(wants_memory);
  EXPECT_EQ(small.verdict, Verdict::kCompileError);
  EXPECT_NE(small.log.find("over its limit of memory"), std::string::npos) << small.log;
  options_.memory_bytes = 4ull << 30;
  const CompileResult large = compile(wants_memory);
  EXPECT_EQ(large.verdict, Verdict::kOk) << large.log;
  EXPECT_FALSE(large.cached);
}

TEST_F(Host, OptionsOfTheCandidate) {
  Candidate c = make_plan_candidate("t",
                                    "// plan: launch k<<<1, 32>>>(x, out, N)\n__global__ void k(const float* "
                                    "x, float* out, int N) { out[0] = TILE; }\n",
                                    {});
  c.options = {"-DTILE=32", "--use_fast_math"};
  EXPECT_EQ(compile_for_host(c, task_, options_).verdict, Verdict::kOk);
  c.options = {"-DTILE=32", "-include", "/etc/passwd"};
  EXPECT_EQ(compile_for_host(c, task_, options_).verdict, Verdict::kCompileError);
}

// They stand behind the twin's header, and are looked at as directives are.
TEST_F(Host, DefinesAreTheCandidatesOwn) {
  const auto with = [&](std::vector<std::string> options, const std::string& body) {
    Candidate c = make_plan_candidate("t",
                                      "// plan: launch k<M><<<1, 32>>>(x, out, N)\ntemplate <int I> "
                                      "__global__ void k(const float* x, float* "
                                      "out, int N) {\n" +
                                          body + "}\n",
                                      {});
    c.options = std::move(options);
    return compile_for_host(c, task_, options_);
  };
  EXPECT_EQ(with({"-DM=3", "-DB=1", "-Dparams=5", "-Dcount=6"}, "out[0] = M + B;\n").verdict, Verdict::kOk);
  const CompileResult wrong = with({"-DM=3", "-DB=1"}, "out[0] = oops;\n");
  EXPECT_NE(wrong.log.find("kernel.cu:3:10: error: 'oops'"), std::string::npos) << wrong.log;
  const CompileResult hidden = with({"-DM=3", "-DX=asm"}, "X(\"nop\"); out[0] = 1;\n");
  EXPECT_EQ(hidden.verdict, Verdict::kUnsupported);
  EXPECT_EQ(hidden.log, "kernel.cu:1:1: error: an option -D: the CPU twin has no inline PTX (asm)\n");
  const CompileResult refused = with({"-DM=3"}, "asm(\"nop\");\n");
  EXPECT_EQ(refused.log, "kernel.cu:3:1: error: the CPU twin has no inline PTX (asm)\n");
  const CompileResult waits =
      with({"-DM=3", "-DSYNC=__syncthreads"}, "out[0] = M; SYNC(); out[1] = out[0];\n");
  EXPECT_EQ(waits.verdict, Verdict::kOk) << waits.log;
}

TEST_F(Host, NamesOfThePlanAreRefusedAsTheSourceIs) {
  const auto with = [&](const std::string& plan) {
    return compile_for_host(make_plan_candidate("t",
                                                "#define ONE 1\n" + plan +
                                                    "template <auto F> __global__ void k(const float* x) {}\n"
                                                    "__constant__ float w[4];\n",
                                                {}),
                            task_, options_);
  };
  EXPECT_EQ(with("// plan: const w <- x\n// plan: launch k<ONE><<<1, 32>>>(x)\n").verdict, Verdict::kOk);
  struct Case {
    const char* plan;
    Verdict verdict;
    const char* log;
  };
  const Case cases[] = {
      {"// plan: launch k<[]{ asm(\"nop\"); }><<<1, 32>>>(x)\n", Verdict::kCompileError,
       "kernel.cu:2:19: `[` cannot stand in the name of a kernel\n"},
      {"// plan: launch k<malloc><<<1, 32>>>(x)\n", Verdict::kUnsupported,
       "kernel.cu:2:19: error: the CPU twin has no malloc in device code\n"},
      {"// plan: launch k<__builtin_trap><<<1, 32>>>(x)\n", Verdict::kCompileError,
       "kernel.cu:2:19: error: `__builtin_trap` is no part of device code here\n"},
      {"// plan: launch k<nothing><<<1, 32>>>(x)\n", Verdict::kCompileError,
       "kernel.cu:2:19: error: 'nothing' was not declared"},
      {"// plan: launch k<1, 2><<<1, 32>>>(x)\n", Verdict::kCompileError, "kernel.cu:2:"},
      {"// plan: launch k<1><<<1, 32>>>(x)\n// plan:   launch j<<<1, 32>>>(x)\n", Verdict::kCompileError,
       "kernel.cu:3:19: error: the plan launches `j`, which is no __global__ function of this source\n"},
      {"// plan: const v <- x\n// plan: launch k<1><<<1, 32>>>(x)\n", Verdict::kCompileError,
       "kernel.cu:2:16: error: the plan fills `v`, which is no variable of this source\n"},
      {"// plan: const F <- x\n// plan: launch k<1><<<1, 32>>>(x)\n", Verdict::kCompileError,
       "kernel.cu:2:16: error: 'F' was not declared"},
      {"// plan: const wstw_kernels <- x\n// plan: launch k<1><<<1, 32>>>(x)\n", Verdict::kCompileError,
       "kernel.cu:2:16: names that begin with wstw_ belong to the twin\n"},
  };
  for (const Case& c : cases) {
    const CompileResult result = with(c.plan);
    EXPECT_EQ(result.verdict, c.verdict) << c.plan;
    EXPECT_EQ(result.log.find(c.log), 0u) << result.log << "for\n" << c.plan;
  }
}

TEST_F(Host, SourcesAreBounded) {
  const auto start = std::chrono::steady_clock::now();
  const CompileResult nested =
      compile("__global__ void k(const float* x, float* out, int N) { out[0] = " + std::string(400'000, '(') +
              "1" + std::string(400'000, ')') + "; }\n");
  EXPECT_EQ(nested.verdict, Verdict::kCompileError);
  EXPECT_EQ(nested.log, "kernel.cu:2:320: error: brackets are nested more than 256 deep\n");
  const CompileResult large = compile(std::string(1 << 20, '\n'));
  EXPECT_EQ(large.verdict, Verdict::kCompileError);
  EXPECT_EQ(large.log, "kernel.cu:1:1: error: the source is larger than 1 MiB\n");
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5);
}

TEST_F(Host, AByteOrderMarkIsPassedOver) {
  Candidate c = make_plan_candidate(
      "t", std::string("\xEF\xBB\xBF// plan: launch k<<<1, 32>>>(x, out, N)\n") + kGood, {});
  EXPECT_EQ(compile_for_host(c, task_, options_).verdict, Verdict::kOk);
  c.options = {"-DTILE=32"};
  EXPECT_EQ(compile_for_host(c, task_, options_).verdict, Verdict::kOk);
}

TEST_F(Host, OtherTiersAreUnsupported) {
  Candidate c = make_plan_candidate("t", kGood, {});
  c.tier = Tier::kPython;
  EXPECT_EQ(compile_for_host(c, task_, options_).verdict, Verdict::kUnsupported);
}

}  // namespace
}  // namespace warpsmith::toolchain

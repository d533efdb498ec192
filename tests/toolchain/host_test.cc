#include "warpsmith/toolchain/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "warpsmith/base/files.h"

namespace warpsmith::toolchain {
namespace {

class Host : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_ = fs::temp_directory_path() / ("warpsmith-host-test-" + std::to_string(::getpid()));
    fs::remove_all(cache_);
    options_.cache = cache_;
    task_.id = "t";
    task_.dims = {"N"};
    task::TensorSpec x;
    x.name = "x";
    x.shape = {task::Expression::parse("N")};
    task_.inputs = {x};
    x.name = "out";
    task_.outputs = {x};
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

TEST_F(Host, OtherTiersAreUnsupported) {
  Candidate c = make_plan_candidate("t", kGood, {});
  c.tier = Tier::kPython;
  EXPECT_EQ(compile_for_host(c, task_, options_).verdict, Verdict::kUnsupported);
}

}  // namespace
}  // namespace warpsmith::toolchain

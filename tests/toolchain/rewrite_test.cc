#include "twin/rewrite.h"

#include <gtest/gtest.h>

namespace warpsmith::toolchain {
namespace {

std::string rewritten(const std::string& source) {
  CleanSource clean;
  read_tokens(source, &clean);
  refuse_constructs(clean);
  std::string text = rewrite(clean, scan_source(clean)).text;
  text.pop_back();  // the newline that every source ends with
  return text;
}

struct Row {
  const char* in;
  const char* out;
};

TEST(Rewrite, TextCases) {
  const Row rows[] = {
      // The context goes in front of what a function takes, and of what it is given.
      {"__global__ void k(int n) { n = threadIdx.x; }",
       "__global__ void k(const wstw_ctx& wstw_, int n) { n = threadIdx.x; }"},
      {"__global__ void k() {}", "__global__ void k(const wstw_ctx& wstw_) {}"},
      {"__device__ int f(void) { return threadIdx.x; }",
       "__device__ int f(const wstw_ctx& wstw_) { return threadIdx.x; }"},
      {"__device__ int f(); __device__ int g() { return f(); } __device__ int f() { return warp(); } "
       "__device__ int warp() { return blockIdx.x; }",
       "__device__ int f(const wstw_ctx& wstw_); __device__ int g(const wstw_ctx& wstw_) { return f(wstw_); "
       "} __device__ int f(const wstw_ctx& wstw_) { return warp(wstw_); } "
       "__device__ int warp(const wstw_ctx& wstw_) { return blockIdx.x; }"},
      // A function that asks nothing is left alone.
      {"__device__ float f(float v) { return v; } __global__ void k(float* o) { *o = f(1); }",
       "__device__ float f(float v) { return v; } __global__ void k(const wstw_ctx& wstw_, float* o) { *o = "
       "f(1); }"},
      {"template <int N> __device__ int f() { return N + threadIdx.x; } __global__ void k(int* o) { *o = "
       "f<3>(); }",
       "template <int N> __device__ int f(const wstw_ctx& wstw_) { return N + threadIdx.x; } __global__ void "
       "k(const wstw_ctx& wstw_, int* o) { *o = f<3>(wstw_); }"},
      // A variable of a function's name is no call.
      {"__device__ int sum() { return threadIdx.x; } __global__ void k(int* o) { int sum(0); *o = sum; }",
       "__device__ int sum(const wstw_ctx& wstw_) { return threadIdx.x; } __global__ void k(const wstw_ctx& "
       "wstw_, int* o) { int sum(0); *o = sum; }"},
      // Shared memory.
      {"__global__ void k() { __shared__ float s[4][5], t; }",
       "__global__ void k(const wstw_ctx& wstw_) { auto& s = wstw_shared<float [ 4 ][ 5 ], decltype([] "
       "{})>(wstw_); auto& t = wstw_shared<float , decltype([] {})>(wstw_);  }"},
      {"__global__ void k() { extern __shared__ unsigned char s[]; }",
       "__global__ void k(const wstw_ctx& wstw_) { unsigned char * const s = (unsigned char "
       "*)wstw_.block->dynamic;  }"},
      // Casts to aligned types.
      {"__global__ void k(float* x) { *(float4*)x = *reinterpret_cast<float4*>(x); }",
       "__global__ void k(const wstw_ctx& wstw_, float* x) { *(float4*)(wstw_cast<float4 *>)x = "
       "*wstw_reinterpret<float4*>(x); }"},
      {"__global__ void k(float* x) { float* y = (float*)x; y = (y); }",
       "__global__ void k(const wstw_ctx& wstw_, float* x) { float* y = (float*)(wstw_cast<float *>)x; y = "
       "(y); }"},
      {"using P = int*; __global__ void k(void* x) { P p = (P)x; p = P(x); p = static_cast<int*>(x); (int&)x "
       "= 1; }",
       "using P = int*; __global__ void k(const wstw_ctx& wstw_, void* x) { P p = (P)(wstw_cast<P>)x; p = "
       "P((wstw_cast<P>)(x)); p = wstw_static<int*>(x); *(int*)(wstw_pointer<int>)&x = 1; }"},
      {"__device__ int f(int*); __device__ int g(int n) { return sizeof(int*) * n + (n) * 2; }",
       "__device__ int f(int*); __device__ int g(int n) { return sizeof(int*) * n + (n) * 2; }"},
      // Shifts, but those by a small number, and ends of template arguments.
      {"__device__ int f(int a, int b) { a <<= b; a >>= 3; return a << b + 1 | a >> 31u | a >> 32; }",
       "__device__ int f(int a, int b) { a <<= wstw_shl <<= b; a >>= 3; return a << wstw_shl << b + 1 | a >> "
       "31u "
       "| a >> wstw_shr >> 32; }"},
      {"template <class T> struct V { T v; }; __device__ int f(V<V<int>> a, int b) { V<V<int>> c = a; return "
       "b < "
       "c.v.v >> b; }",
       "template <class T> struct V { T v; }; __device__ int f(V<V<int>> a, int b) { V<V<int>> c = a; return "
       "b < "
       "c.v.v >> wstw_shr >> b; }"},
      {"#define SHL(a, b) ((a) << (b))", "#define SHL(a, b) ((a) << wstw_shl << (b))"},
      // Lambdas.
      {"__global__ void k() { auto f = [](int i) { return i; }; auto g = [&](int i) { return i; }; }",
       "__global__ void k(const wstw_ctx& wstw_) { auto f = [&wstw_](int i) { return i; }; auto g = [&](int "
       "i) { return i; }; }"},
      // Directives.
      {"#include <cuda_fp16.h>\n#pragma unroll 4\n#define N 3", "\n#pragma GCC unroll 4\n#define N 3"},
      {"#define U _Pragma(\"unroll\")\n#define V _Pragma(\"unroll 4\")",
       "#define U _Pragma(\"GCC unroll 8\")\n#define V _Pragma(\"GCC unroll 4\")"},
      {"#define FOUR(p) (reinterpret_cast<float4*>(&(p))[0])\n#define TWO(p) (*(float2*)(&(p)))",
       "#define FOUR(p) (wstw_reinterpret<float4*>(&(p))[0])\n#define TWO(p) (*(float2*)(wstw_cast<float2 "
       "*>)(&(p)))"},
      {"#include <stdio.h>\n#if 0\n#include <vector>\n#endif\nconst int a = 1;",
       "\n#if 0\n\n#endif\nconst int a = 1;"},
      {"__global__ void __launch_bounds__(2 * 64, 2) k(int n) {}",
       "__global__ void __launch_bounds__(2 * 64, 2) k(const wstw_bounded<(unsigned)(2 * 64 )>& wstw_, int "
       "n) {}"},
      {"__global__ void __launch_bounds__(64) k(int n); __global__ void k(int n) {}",
       "__global__ void __launch_bounds__(64) k(const wstw_ctx& wstw_, int n); __global__ void k(const "
       "wstw_ctx& "
       "wstw_, int n) {}"},
      {"#if 0\n#define P _Pragma\n#endif\nconst int a = 1;",
       "#if 0\n#define P _Pragma\n#endif\nconst int a = 1;"},
      {"__global__ void k() { __shared__ struct { int a; } s; }",
       "__global__ void k(const wstw_ctx& wstw_) { struct wstw_unnamed_6 { int a ; }; auto& s = "
       "wstw_shared<struct wstw_unnamed_6 , decltype([] {})>(wstw_);  }"},
      // Comments and spliced lines leave the lines where they are.
      {"int a; // x\n/* y\n z */ const int b = 1;", "int a;     \n          const int b = 1;"},
      {"#define A 1 + \\\n  2\nconst int b = A;", "#define A 1 +   2\n\nconst int b = A;"},
  };
  for (const Row& row : rows) EXPECT_EQ(rewritten(row.in), row.out) << row.in;
}

struct Refused {
  const char* source;
  const char* message;
  bool unsupported;
  int line;
};

TEST(Rewrite, Refusals) {
  const Refused rows[] = {
      {"__device__ void f() { asm(\"trap;\"); }", "inline PTX", true, 1},
      {"\n__device__ void f() { __asm__ volatile(\"\"); }", "inline PTX", true, 2},
      {"#define A a##sm\n", "##", true, 1},
      {"using namespace nvcuda;", "wmma", true, 1},
      {"#include <mma.h>\n", "wmma", true, 1},
      {"__device__ void f() { __pipeline_commit(); }", "cp.async", true, 1},
      {"__device__ void f() { cuda::barrier b; }", "cuda::", true, 1},
      {"__device__ float f(cudaTextureObject_t t) { return tex2D<float>(t, 0, 0); }", "textures", true, 1},
      {"__global__ void k() {}\n__global__ void j() { k<<<1, 1>>>(); }", "launches from the device", true, 2},
      {"__cluster_dims__(2) __global__ void k() {}", "clusters", true, 1},
      {"__device__ void f() { char* p = (char*)malloc(1ull << 40); }", "malloc", true, 1},
      {"__device__ int* f() { return new int[5]; }", "new", true, 1},
      {"struct S { __device__ int operator()() { return threadIdx.x; } };", "operator", true, 1},
      {"#include \"/etc/passwd\"\n", "only CUDA's own headers", false, 1},
      {"#include </etc/passwd>\n", "only CUDA's own headers", false, 1},
      {"#inc\\\nlude \"/etc/passwd\"\n", "only CUDA's own headers", false, 1},
      {"/**/ # /**/ include \"/etc/passwd\"\n", "only CUDA's own headers", false, 1},
      {"%:include \"/etc/passwd\"\n", "digraphs", false, 1},
      {"#define H \"/etc/passwd\"\n#include H\n", "#include wants", false, 2},
      {"#include_next <math.h>\n", "#include_next", false, 1},
      {"#import \"/etc/passwd\"\n", "#import", false, 1},
      {"#embed \"/etc/passwd\"\n", "#embed", false, 1},
      {"#line 5 \"/etc/passwd\"\n", "#line", false, 1},
      {"#if __has_include(\"/etc/passwd\")\n#endif\n", "__has_include", false, 1},
      {"_Pragma(\"GCC dependency\")", "_Pragma", false, 1},
      {"#define P _Pragma\nP(\"GCC dependency \\\"/etc/passwd\\\"\")", "_Pragma", false, 1},
      {"_Pragma(\"unroll\\nfoo\")", "_Pragma", false, 1},
      {"_Pragma(L\"unroll\")", "_Pragma", false, 1},
      {"const char* f = __FILE__;", "__FILE__", false, 1},
      {"const char* f = R\"(\n#include <x>)\";", "string does not end", false, 1},
      {"const char* f = R\"(x)\";", "raw strings", false, 1},
      {"__attribute__((constructor)) void f() {}", "attributes", false, 1},
      {"[[gnu::constructor]] void f() {}", "attributes", false, 1},
      {"__attribute__((aligned(4), section(\"x\"))) int a;", "attributes", false, 1},
      {"__attribute__((unused, weak)) int a;", "attributes", false, 1},
      {"#define A __attribute__((section(\"x\")))\n", "attributes", false, 1},
      {"#define A(x) __attribute__((x))\n", "attributes", false, 1},
      {"#define A __attribute__\n", "attributes", false, 1},
      {"#define G gnu\n", "attributes", false, 1},
      {"#define SMEM __shared__\n__global__ void k() { SMEM int s; }", "__shared__ in a macro", true, 1},
      {"__shared__ struct { int a; } s;\n__global__ void k() { s.a = 1; }", "outside of functions", true, 1},
      // Headers of CUDA's that the twin does without, and those that nobody has.
      {"#include <cooperative_groups/memcpy_async.h>\n", "no <cooperative_groups/memcpy_async.h>", true, 1},
      {"#include <cuda_fp8.h>\n", "no <cuda_fp8.h>", true, 1},
      {"#include <curand_kernel.h>\n", "no <curand_kernel.h>", true, 1},
      {"#include <nv/target>\n", "no <nv/target>", true, 1},
      {"#include <cub/cub.cuh>\n", "no <cub/cub.cuh>", true, 1},
      {"#include <cuda/../../etc/passwd>\n", "only CUDA's own headers", false, 1},
      {"#include <vector>\n", "only CUDA's own headers", false, 1},
      // What ends `#if 0` for a compiler ends it here.
      {"#if 0\n#endif\n#include <vector>\n", "only CUDA's own headers", false, 3},
      {"#if 0\n#else\n#include <vector>\n#endif\n", "only CUDA's own headers", false, 3},
      {"#if 0\n#elif 1\n#include <vector>\n#endif\n", "only CUDA's own headers", false, 3},
      {"#if 0\n#if 1\n#endif\n#endif\n#include <vector>\n", "only CUDA's own headers", false, 5},
      {"#if 0\n%:endif\n#include <vector>\n", "digraphs", false, 2},
      {"#if 0\n#elifdef X\n#include <vector>\n#endif\n", "#elifdef", false, 2},
      {"#if 0\n#if0\n#endif\n#include <vector>\n", "only CUDA's own headers", false, 4},
      {"#if 0\n#if\xc3\xa9\n#endif\n#include <vector>\n", "#if", false, 2},
      {"#if 0\n#endif\\u00e9\n#include <vector>\n", "#endif", false, 2},
      {"#if 00\n#include <vector>\n#endif\n", "only CUDA's own headers", false, 2},
      {"#if 0 + 1\n#include <vector>\n#endif\n", "only CUDA's own headers", false, 2},
      {"float g(float v) { return v; }", "host function", false, 1},
      {"int main() { return 0; }", "host function", false, 1},
      {"extern \"C\" int fork();", "host function", false, 1},
      {"__device__ int f() { return __builtin_return_address(0) != 0; }", "__builtin_return_address", false,
       1},
      {"__device__ int wstw_x;", "wstw_", false, 1},
      {"__global__ void k() { int a = (1; }", "not closed", false, 1},
      {"__global__ void k( {", "not closed", false, 1},
      {"/* open", "comment does not end", false, 1},
  };
  for (const Refused& row : rows) {
    try {
      rewritten(row.source);
      ADD_FAILURE() << "taken: " << row.source;
    } catch (const SourceProblem& p) {
      EXPECT_NE(p.message.find(row.message), std::string::npos) << p.message << " for " << row.source;
      EXPECT_EQ(p.unsupported, row.unsupported) << row.source;
      EXPECT_EQ(p.line, row.line) << row.source;
    }
  }
}

TEST(Rewrite, ColumnsOfTheOriginal) {
  const std::string source =
      "__device__ int f() { return threadIdx.x; }\n__global__ void k(int* o) { *o = f() + oops; }\n";
  CleanSource clean;
  read_tokens(source, &clean);
  const Rewritten r = rewrite(clean, scan_source(clean));
  const std::string second = r.text.substr(r.text.find('\n') + 1);
  const std::string original = source.substr(source.find('\n') + 1);
  EXPECT_EQ(original_column(r, 2, static_cast<int>(second.find("oops")) + 1),
            static_cast<int>(original.find("oops")) + 1);
}

}  // namespace
}  // namespace warpsmith::toolchain

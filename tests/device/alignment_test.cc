// An access through a cast to a type of greater alignment than the address has is `crash` on the CPU twin, as
// on a GPU, however the cast is written; and nothing else is.
#include <gtest/gtest.h>

#include "twin_fixture.h"

namespace warpsmith::device {
namespace {

struct CastRow {
  const char* statements;  // of `const T* x`, `float* out`, int i
  const char* front = "";
};

constexpr std::uint64_t kMisaligned = 1;  // elements

// x has elements of `type`; both tensors begin `shift` elements behind a boundary of 256 bytes.
Outcome run_row(const char* type, std::size_t bytes, const CastRow& row, std::uint64_t shift) {
  Case c;
  c.source = std::string("// plan: launch k<<<1, 32>>>(x, out)\n#include <cuda_fp16.h>\n") + row.front +
             "\n__global__ void k(const " + type + "* x, float* out) {\n  int i = threadIdx.x;\n  " +
             row.statements + "\n}\n";
  Tensor x{bytes == 2   ? task::Dtype::kFloat16
           : bytes == 1 ? task::Dtype::kInt8
                        : task::Dtype::kFloat32,
           std::vector<std::byte>(256 * bytes)};
  c.inputs["x"] = x;
  c.outputs["out"] = tensor(std::vector<float>(256));
  c.misalignment = {{"x", shift * bytes}, {"out", shift * 4}};
  return run_case(c);
}

void check_crashes(const char* type, std::size_t bytes, const std::vector<CastRow>& rows) {
  for (const CastRow& row : rows) {
    SCOPED_TRACE(std::string(row.front) + " … " + row.statements);
    const Outcome wrong = run_row(type, bytes, row, kMisaligned);
    EXPECT_EQ(wrong.verdict, Verdict::kCrash) << to_string(wrong.verdict) << wrong.detail;
    EXPECT_NE(wrong.detail.find("misaligned"), std::string::npos) << wrong.detail;
    const Outcome right = run_row(type, bytes, row, 0);
    EXPECT_EQ(right.verdict, Verdict::kOk) << to_string(right.verdict) << right.detail;
  }
}

TEST(Alignment, CastsOfFloats) {
  check_crashes(
      "float", 4,
      {
          {"out[i] = *(const long long*)(x + 2 * i);"},
          {"out[i] = *reinterpret_cast<const long long*>(x + 2 * i);"},
          {"out[i] = ((const double*)x)[i];"},
          {"out[i] = ((double const* __restrict__)x)[i];"},
          {"const unsigned long long* p = (const unsigned long long*)x; out[i] = p[i];"},
          {"auto p = reinterpret_cast<const float2*>(x) + i; out[i] = p->y;"},
          {"out[i] = static_cast<const double*>(static_cast<const void*>(x))[i];"},
          {"const void* p = x; out[i] = ((const float4*)p)[i].w;"},
          {"out[i] = __ldg((const double*)x + i);"},
          {"out[i] = *(const unsigned long long*)((const char*)x + 8 * i);"},
          {"out[i] = *(const double*)((uintptr_t)x + 8 * i);"},
          {"out[i] = (const double&)x[2 * i];"},
          {"out[i] = reinterpret_cast<const double&>(x[2 * i]);"},
          {"out[i] = ((const float2 (*)[2])x)[i / 2][i % 2].x;"},
          {"const double* q = nullptr; out[i] = ((decltype(q))x)[i];"},
          {"out[i] = ((const float2*)__builtin_assume_aligned(x, 8))[i].y;"},
          {"*(double*)(out + 2 * i) = x[i];"},
          {"*reinterpret_cast<float4*>(&out[4 * i]) = make_float4(1, 2, 3, 4);"},
          {"atomicAdd((unsigned long long*)out + i, 1ull);"},
          {"auto f = [&](const float* p) { return ((const double*)p)[i]; }; out[i] = f(x);"},
          {"__shared__ float s[32]; s[i] = ((const double*)x)[i]; __syncthreads(); out[i] = s[31 - i];"},
      });
}

TEST(Alignment, CastsThroughNames) {
  check_crashes(
      "float", 4,
      {
          {"out[i] = ((P)x)[i];", "typedef const double* P;"},
          {"out[i] = ((P)x)[i];", "using P = const double*;"},
          {"out[i] = P(x)[i];", "using P = const long long*;"},
          {"out[i] = static_cast<P>((const void*)x)[i];", "using P = const double*;"},
          {"out[i] = reinterpret_cast<P>(x)[i];", "typedef const double* P;"},
          {"out[i] = ((const D*)x)[i];", "using D = double;"},
          {"using V = float2; out[i] = ((const V*)x)[i].x;"},
          {"out[i] = ((const Q*)x)[i].v[3];", "struct alignas(16) Q { float v[4]; };"},
          {"out[i] = ((const Q*)x)[i].b;", "struct Q { float a; double b; };"},
          {"out[i] = get<double>(x, i);",
           "template <class T> __device__ T get(const float* p, int i) { return ((const T*)p)[i]; }"},
          {"out[i] = get<const double*>(x, i);",
           "template <typename P> __device__ double get(const float* p, int i) { return ((P)p)[i]; }"},
          {"out[i] = get<float, 2>(x, i).v[1];",
           "template <class T, int N> struct alignas(sizeof(T) * N) Vec { T v[N]; };\n"
           "template <class T, int N> __device__ Vec<T, N> get(const T* p, int i) { return "
           "*reinterpret_cast<const Vec<T, N>*>(p + N * i); }"},
          {"out[i] = AT(double, x, i);", "#define AT(T, p, i) (((const T*)(p))[i])"},
          {"out[i] = ((DP)x)[i];", "#define DP const double*"},
          {"out[i] = F2(x[2 * i]).y;", "#define F2(v) (*reinterpret_cast<const float2*>(&(v)))"},
      });
}

TEST(Alignment, CastsOfHalves) {
  check_crashes("half", 2,
                {
                    {"out[i] = *(const int*)(x + 2 * i);"},
                    {"unsigned u = *reinterpret_cast<const unsigned*>(x + 2 * i); out[i] = u;"},
                    {"out[i] = __low2float(((const half2*)x)[i]);"},
                    {"half2 h = *(const half2*)(x + 2 * i); out[i] = __high2float(h);"},
                    {"out[i] = *(const float*)(x + 2 * i);"},
                    {"out[i] = __half2float(((const half*)((const int*)x + i))[0]) + ((const int*)x)[i];"},
                });
}

TEST(Alignment, CastsOfBytes) {
  check_crashes("signed char", 1,
                {
                    {"out[i] = __dp4a(*(const int*)(x + 4 * i), 0x01010101, 0);"},
                    {"out[i] = __dp4a(((const int*)x)[i], 0x01010101, 0);"},
                    {"char4 c = *(const char4*)(x + 4 * i); out[i] = c.w;"},
                    {"out[i] = *(const short*)(x + 2 * i);"},
                    {"out[i] = ((const ushort2*)x)[i].y;"},
                    {"const int2 v = ((const int2*)x)[i]; out[i] = __dp4a(v.x, v.y, 0);"},
                });
}

TEST(Alignment, ParametersOfOtherTypesThanTheTensor) {
  for (const char* type : {"double", "float2", "long long", "const float4"}) {
    Case c;
    c.source = std::string("// plan: launch k<<<1, 32>>>(x, out)\n__global__ void k(") + type +
               "* x, float* out) { out[threadIdx.x] = *(const float*)(x + threadIdx.x / 2); " + type +
               " v = x[threadIdx.x / 2]; out[threadIdx.x] += *(const float*)&v; }\n";
    c.inputs["x"] = tensor(std::vector<float>(256));
    c.outputs["out"] = tensor(std::vector<float>(32));
    EXPECT_EQ(run_case(c).verdict, Verdict::kOk) << type << run_case(c).detail;
    c.misalignment["x"] = 4;
    EXPECT_EQ(run_case(c).verdict, Verdict::kCrash) << type;
  }
}

// What is right on a GPU with misaligned tensors is right here.
TEST(Alignment, NoFalseAlarms) {
  const std::vector<CastRow> rows = {
      {"if (((uintptr_t)x & 15) == 0) out[i] = ((const float4*)x)[0].x; else out[i] = x[i];"},
      {"const double* p = (const double*)x; out[i] = *(const float*)(p + i / 2);"},
      {"const double* p = (const double*)x; out[i] = ((const char*)(p + i / 8))[i % 8];"},
      {"const double* p = (const double*)((const char*)(const double*)x + 4); out[i] = p[i];"},
      {"const double* p = (const double*)(((uintptr_t)x + 7) & ~(uintptr_t)7); out[i] = p[i];"},
      {"const double* p = (const double*)x; out[i] = p == (const double*)x && p != nullptr;"},
      {"unsigned char b[4] = {1, 2, 3, (unsigned char)i}; out[i] = *(const int*)b;"},
      {"float v[4] = {x[i], 2, 3, 4}; float4 w = *(const float4*)v; out[i] = w.x + w.w;"},
      {"float f = x[i]; out[i] = *(const int*)&f + *reinterpret_cast<const unsigned*>(&f);"},
      {"const float4* none = (const float4*)0; out[i] = none == NULL ? 1 : 2;"},
      {"out[i] = (T)x[i] + (T)(1) + T(i) + twice<double>(x[i]);",
       "using T = float; template <class U> __device__ float twice(float v) { return (U)v * (U)2; }"},
      {"out[i] = sizeof(float4*) * i + (i) * 2 + (float)(i);"},
      {"typedef float4* P; P p = P(nullptr); out[i] = p == nullptr;"},
      {"out[i] = apply(x, i);",
       "__device__ float at(const float* p, int i) { return p[i]; }\n"
       "using F = float (*)(const float*, int);\n"
       "__device__ float apply(const float* p, int i) { return ((F)at)(p, i); }"},
      {"__shared__ char s[64]; float* f = (float*)(s + 4); f[i % 8] = x[i]; __syncthreads(); out[i] = f[0];"},
  };
  for (const CastRow& row : rows) {
    SCOPED_TRACE(std::string(row.front) + " … " + row.statements);
    const Outcome outcome = run_row("float", 4, row, kMisaligned);
    EXPECT_EQ(outcome.verdict, Verdict::kOk) << to_string(outcome.verdict) << outcome.detail;
  }
}

}  // namespace
}  // namespace warpsmith::device

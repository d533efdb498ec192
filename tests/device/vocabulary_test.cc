// Each intrinsic that the twin supplies: a row of code, what it gives for some arguments, what is right.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "twin_fixture.h"

namespace warpsmith::device {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Rows of one kernel: out[row * count + i] = expression of a = x[i], b = y[i] (floats).
struct Row {
  const char* expression;
  std::function<double(double a, double b)> expected;
  double ulps = 2;
};

std::vector<float> run_rows(const std::vector<Row>& rows, const std::vector<float>& x,
                            const std::vector<float>& y) {
  Case c;
  std::string body;
  for (std::size_t r = 0; r < rows.size(); ++r)
    body += "  out[" + std::to_string(r) + " * n + i] = " + rows[r].expression + ";\n";
  c.source =
      "// plan: launch k<<<cdiv(N, 32), 32>>>(x, y, out, N)\n__global__ void k(const float* x, const float* "
      "y, float* out, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n  float a = x[i], b = y[i]; "
      "(void)b;\n" +
      body + "}\n";
  c.inputs["x"] = tensor(x);
  c.inputs["y"] = tensor(y);
  c.outputs["out"] = tensor(std::vector<float>(rows.size() * x.size()));
  c.dims["N"] = static_cast<std::int64_t>(x.size());
  const Outcome outcome = run_case(c);
  EXPECT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
  return outcome.verdict == Verdict::kOk ? values<float>(outcome.outputs.at("out"))
                                         : std::vector<float>(rows.size() * x.size());
}

void check_rows(const std::vector<Row>& rows, const std::vector<float>& x, const std::vector<float>& y) {
  const std::vector<float> out = run_rows(rows, x, y);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = rows[r].expected(static_cast<double>(x[i]), static_cast<double>(y[i]));
      const float got = out[r * x.size() + i], nearest = static_cast<float>(want);
      SCOPED_TRACE(std::string(rows[r].expression) + " at a = " + std::to_string(x[i]) +
                   ", b = " + std::to_string(y[i]));
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << got;
      } else if (std::isinf(nearest)) {
        EXPECT_EQ(got, nearest);
      } else {
        const double ulp =
            std::max(std::ldexp(1.0, std::ilogb(nearest == 0 ? 1e-38f : nearest) - 23), 1.4e-45);
        EXPECT_LE(std::fabs(static_cast<double>(got) - want), rows[r].ulps * ulp + 1e-44)
            << got << " where " << want << " is right";
      }
    }
}

std::vector<float> spread() {
  std::vector<float> v = {0.f,         -0.f,         1.f,  -1.f,  0.5f,  -0.5f,  1e-6f,  -1e-6f, 1e-20f,
                          3.14159265f, -3.14159265f, 10.f, -10.f, 87.5f, -87.5f, 0.625f, 0.93f,  -0.92f};
  for (int i = -300; i <= 300; ++i) v.push_back(static_cast<float>(i) * 0.0371f);
  return v;
}

TEST(Vocabulary, FloatFunctions) {
  // Tolerances in units of the last place: as wide as CUDA's own tables or narrower.
  const std::vector<Row> rows = {
      {"expf(a)", [](double a, double) { return std::exp(a); }},
      {"__expf(a)", [](double a, double) { return std::exp(a); }},
      {"exp(a)", [](double a, double) { return std::exp(a); }},
      {"exp2f(a)", [](double a, double) { return std::exp2(a); }},
      {"exp10f(a * 0.1f)",
       [](double a, double) { return std::pow(10.0, static_cast<double>(static_cast<float>(a) * 0.1f)); }},
      {"expm1f(a)", [](double a, double) { return std::expm1(a); }},
      {"tanhf(a)", [](double a, double) { return std::tanh(a); }},
      {"erff(a)", [](double a, double) { return std::erf(a); }},
      {"erfcf(a)", [](double a, double) { return std::erfc(a); }},
      {"sinf(a)", [](double a, double) { return std::sin(a); }},
      {"cosf(a)", [](double a, double) { return std::cos(a); }},
      {"tanf(a)", [](double a, double) { return std::tan(a); }, 4},
      {"atanf(a)", [](double a, double) { return std::atan(a); }},
      {"sinhf(a * 0.1f)",
       [](double a, double) { return std::sinh(static_cast<double>(static_cast<float>(a) * 0.1f)); }, 3},
      {"coshf(a * 0.1f)",
       [](double a, double) { return std::cosh(static_cast<double>(static_cast<float>(a) * 0.1f)); }, 3},
      {"floorf(a)", [](double a, double) { return std::floor(a); }, 0},
      {"ceilf(a)", [](double a, double) { return std::ceil(a); }, 0},
      {"truncf(a)", [](double a, double) { return std::trunc(a); }, 0},
      {"rintf(a)", [](double a, double) { return std::rint(a); }, 0},
      {"roundf(a)", [](double a, double) { return std::round(a); }, 0},
      {"fabsf(a)", [](double a, double) { return std::fabs(a); }, 0},
      {"fmaxf(a, b)", [](double a, double b) { return std::fmax(a, b); }, 0},
      {"fminf(a, b)", [](double a, double b) { return std::fmin(a, b); }, 0},
      {"max(a, b)", [](double a, double b) { return std::fmax(a, b); }, 0},
      {"fdimf(a, b)", [](double a, double b) { return std::fdim(a, b); }, 1},
      {"copysignf(a, b)", [](double a, double b) { return std::copysign(a, b); }, 0},
      {"fmaf(a, b, 0.25f)", [](double a, double b) { return std::fma(a, b, 0.25); }, 1},
      {"__saturatef(a)", [](double a, double) { return std::fmin(std::fmax(a, 0.0), 1.0); }, 0},
      {"hypotf(a, b)", [](double a, double b) { return std::hypot(a, b); }},
      {"atan2f(a, b)", [](double a, double b) { return std::atan2(a, b); }},
      {"fmodf(a, 0.7f)", [](double a, double) { return std::fmod(a, static_cast<double>(0.7f)); }, 0},
      {"powf(fabsf(a), 1.5f)", [](double a, double) { return std::pow(std::fabs(a), 1.5); }},
      {"__tanhf(a)", [](double a, double) { return std::tanh(a); }},
      {"__sinf(a) + 0.f * __cosf(a)", [](double a, double) { return std::sin(a); }},
      {"__cosf(a)", [](double a, double) { return std::cos(a); }},
      {"__tanf(a * 0.1f)",
       [](double a, double) { return std::tan(static_cast<double>(static_cast<float>(a) * 0.1f)); }, 3},
      {"__exp10f(a * 0.1f)",
       [](double a, double) { return std::pow(10.0, static_cast<double>(static_cast<float>(a) * 0.1f)); }},
      {"[](float v) { float s, c; sincosf(v, &s, &c); return s; }(a)",
       [](double a, double) { return std::sin(a); }},
      {"[](float v) { float s, c; __sincosf(v, &s, &c); return c; }(a)",
       [](double a, double) { return std::cos(a); }},
      {"asinf(__saturatef(fabsf(a)))",
       [](double a, double) { return std::asin(std::fmin(std::fabs(a), 1.0)); }},
      {"acosf(__saturatef(fabsf(a)))",
       [](double a, double) { return std::acos(std::fmin(std::fabs(a), 1.0)); }, 4},
      {"asinhf(a)", [](double a, double) { return std::asinh(a); }, 3},
      {"acoshf(fabsf(a) + 1.5f)",
       [](double a, double) {
         return std::acosh(static_cast<double>(std::fabs(static_cast<float>(a)) + 1.5f));
       },
       3},
      {"atanhf(tanhf(a) * 0.5f)", [](double a, double) { return std::atanh(std::tanh(a) * 0.5); }, 4},
      {"normcdff(a * 0.1f)",
       [](double a, double) {
         return 0.5 * std::erfc(-static_cast<double>(static_cast<float>(a) * 0.1f) * std::sqrt(0.5));
       },
       4},
      {"tgammaf(__saturatef(fabsf(a)) + 1.f)",
       [](double a, double) {
         return std::tgamma(static_cast<double>(std::fmin(std::fabs(static_cast<float>(a)), 1.f) + 1.f));
       },
       5},
      {"remainderf(a, 0.7f)", [](double a, double) { return std::remainder(a, static_cast<double>(0.7f)); },
       0},
      {"ldexpf(a, 3)", [](double a, double) { return a * 8; }, 0},
      {"[](float v) { int e; float m = frexpf(v, &e); return ldexpf(m, e); }(a)",
       [](double a, double) { return a; }, 0},
      {"__fmaf_rn(a, b, 0.25f)", [](double a, double b) { return std::fma(a, b, 0.25); }, 1},
      {"__fadd_rn(__fmul_rn(a, b), 0.25f)",
       [](double a, double b) { return static_cast<double>(static_cast<float>(a * b) + 0.25f); }, 0},
      {"__fsub_rn(a, b)", [](double a, double b) { return a - b; }, 1},
      {"__fdiv_rn(a, 3.f)", [](double a, double) { return a / 3; }, 1},
      {"fdividef(a, 3.f)", [](double a, double) { return a / 3; }, 1},
      {"nearbyintf(a)", [](double a, double) { return std::rint(a); }, 0},
      {"(float)lrintf(a) + (float)lroundf(b)",
       [](double a, double b) { return std::rint(a) + std::round(b); }, 0},
      {"(float)signbit(a)", [](double a, double) { return std::signbit(a) ? 1 : 0; }, 0},
      {"(float)(sin((double)a) + pow(2.0, 0.5) + fmax(1.0, 2.0))",
       [](double a, double) { return std::sin(a) + std::sqrt(2.0) + 2; }, 1},
      {"sqrt(fabs(a)) + pow(2.f, 2) + fmin(1.f, 2.f)",
       [](double a, double) { return std::sqrt(std::fabs(a)) + 5; }, 2},
      {"(float)tanh((double)a)", [](double a, double) { return std::tanh(a); }, 1},
  };
  std::vector<float> x = spread(), y(x.rbegin(), x.rend());
  check_rows(rows, x, y);
}

TEST(Vocabulary, FunctionsOfPositiveNumbers) {
  const std::vector<Row> rows = {
      {"logf(a)", [](double a, double) { return std::log(a); }},
      {"__logf(a)", [](double a, double) { return std::log(a); }},
      {"log2f(a)", [](double a, double) { return std::log2(a); }},
      {"log10f(a)", [](double a, double) { return std::log10(a); }},
      {"log1pf(a)", [](double a, double) { return std::log1p(a); }, 3},
      {"sqrtf(a)", [](double a, double) { return std::sqrt(a); }, 1},
      {"rsqrtf(a)", [](double a, double) { return 1 / std::sqrt(a); }},
      {"__frsqrt_rn(a)", [](double a, double) { return 1 / std::sqrt(a); }},
      {"rcbrtf(a)", [](double a, double) { return 1 / std::cbrt(a); }, 3},
      {"rhypotf(a, 0.f)", [](double a, double) { return 1 / a; }},
      {"__fsqrt_rn(a)", [](double a, double) { return std::sqrt(a); }, 1},
      {"__log2f(a)", [](double a, double) { return std::log2(a); }},
      {"__log10f(a)", [](double a, double) { return std::log10(a); }},
      {"__powf(a, 0.5f)", [](double a, double) { return std::sqrt(a); }},
      {"(float)rsqrt((double)a)", [](double a, double) { return 1 / std::sqrt(a); }, 1},
      {"cbrtf(a)", [](double a, double) { return std::cbrt(a); }},
      {"__frcp_rn(a)", [](double a, double) { return 1 / a; }, 1},
      {"__fdividef(1.f, a)", [](double a, double) { return 1 / a; }, 1},
      {"powf(a, -0.7f)", [](double a, double) { return std::pow(a, static_cast<double>(-0.7f)); }},
      {"lgammaf(a + 1.f)",
       [](double a, double) { return std::lgamma(static_cast<double>(static_cast<float>(a) + 1.f)); }, 8},
  };
  std::vector<float> x = {1e-37f,  1e-30f,      1e-6f, 0.1f, 0.5f,  0.70710678f, 0.9999f, 1.f,
                          1.0001f, 1.41421356f, 2.f,   3.f,  100.f, 12345.f,     1e20f,   3e38f};
  for (int i = 1; i < 200; ++i) x.push_back(static_cast<float>(i) * 0.031f);
  std::vector<Row> narrow(rows.begin(), rows.end() - 1);
  check_rows(narrow, x, x);
  check_rows({rows.back()}, {1.f, 2.5f, 7.f, 20.f}, {0, 0, 0, 0});
}

TEST(Vocabulary, EdgesOfFloatFunctions) {
  const std::vector<Row> rows = {
      {"expf(a)", [](double a, double) { return static_cast<double>(std::exp(static_cast<float>(a))); }, 2},
      {"exp2f(a)", [](double a, double) { return static_cast<double>(std::exp2(static_cast<float>(a))); }, 2},
      {"logf(a)", [](double a, double) { return std::log(a); }},
      {"log2f(a)", [](double a, double) { return std::log2(a); }},
      {"log1pf(a)", [](double a, double) { return std::log1p(a); }, 3},
      {"tanhf(a)", [](double a, double) { return std::tanh(a); }},
      {"erff(a)", [](double a, double) { return std::erf(a); }},
      {"fmaxf(a, 1.f)", [](double a, double) { return std::fmax(a, 1.0); }, 0},
      {"fminf(1.f, a)", [](double a, double) { return std::fmin(1.0, a); }, 0},
      {"sqrtf(a)", [](double a, double) { return std::sqrt(a); }},
      {"(float)(isnan(a) + 2 * isinf(a) + 4 * isfinite(a))",
       [](double a, double) { return std::isnan(a)   ? 1
                                     : std::isinf(a) ? 2
                                                     : 4; }, 0},
  };
  const std::vector<float> x = {kInf,   -kInf,  kNan,   0.f,    -0.f,   1e-40f, -1e-40f,
                                88.7f,  88.8f,  127.9f, 128.1f, -87.4f, -100.f, -103.f,
                                -149.f, -152.f, 3e38f,  -3e38f, -1.f};
  check_rows(rows, x, x);
}

TEST(Vocabulary, Integers) {
  struct IntRow {
    const char* expression;
    std::function<int(int, int)> expected;
  };
  const auto u = [](int v) { return static_cast<unsigned>(v); };
  const std::vector<IntRow> rows = {
      {"__popc(a)", [&](int a, int) { return __builtin_popcount(u(a)); }},
      {"__clz(a)", [&](int a, int) { return a ? __builtin_clz(u(a)) : 32; }},
      {"__ffs(a)", [](int a, int) { return __builtin_ffs(a); }},
      {"(int)__brev(a)",
       [&](int a, int) {
         unsigned r = 0;
         for (int i = 0; i < 32; ++i) r |= (u(a) >> i & 1u) << (31 - i);
         return static_cast<int>(r);
       }},
      {"__popcll((long long)a << 16)",
       [&](int a, int) { return __builtin_popcountll(static_cast<unsigned long long>(a) << 16); }},
      {"__clzll((long long)(unsigned)a)", [&](int a, int) { return a ? 32 + __builtin_clz(u(a)) : 64; }},
      {"__ffsll((long long)(unsigned)a << 8)", [](int a, int) { return a ? __builtin_ffs(a) + 8 : 0; }},
      {"__mulhi(a, b)", [](int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }},
      {"(int)__umulhi(a, b)",
       [&](int a, int b) { return static_cast<int>((static_cast<unsigned long long>(u(a)) * u(b)) >> 32); }},
      {"__mul24(a & 0xfff, b & 0xfff)", [](int a, int b) { return (a & 0xfff) * (b & 0xfff); }},
      {"(int)__byte_perm(a, b, 0x6240)",
       [&](int a, int b) {
         return static_cast<int>((u(a) & 255u) | (u(b) & 255u) << 8 | (u(a) >> 16 & 255u) << 16 |
                                 (u(b) >> 16 & 255u) << 24);
       }},
      {"(int)__funnelshift_l(a, b, 5)",
       [&](int a, int b) { return static_cast<int>(u(b) << 5 | u(a) >> 27); }},
      {"__dp4a(0x01020304, 0x01010101, a & 255)", [](int a, int) { return 10 + (a & 255); }},
      {"(int)__funnelshift_r(a, b, 5)",
       [&](int a, int b) { return static_cast<int>(u(a) >> 5 | u(b) << 27); }},
      {"(int)__umul24(a, b)",
       [&](int a, int b) { return static_cast<int>((u(a) & 0xffffffu) * (u(b) & 0xffffffu)); }},
      {"(int)__umul64hi((unsigned long long)(unsigned)a << 32, (unsigned long long)(unsigned)b << 32)",
       [&](int a, int b) { return static_cast<int>(static_cast<unsigned long long>(u(a)) * u(b)); }},
      {"__sad(a & 0xffff, b & 0xffff, 7u)",
       [](int a, int b) { return std::abs((a & 0xffff) - (b & 0xffff)) + 7; }},
      {"(int)(__brevll((unsigned long long)(unsigned)a) >> 32) == (int)__brev(a)",
       [](int, int) { return 1; }},
      {"(int)__dp4a(0xff020304u, 0x01010101u, 1u)", [](int, int) { return 255 + 9 + 1; }},
      {"(int)umin(a, b)", [&](int a, int b) { return static_cast<int>(std::min(u(a), u(b))); }},
      {"(int)umax(a, b)", [&](int a, int b) { return static_cast<int>(std::max(u(a), u(b))); }},
      {"(int)__float_as_uint(__uint_as_float(a & 0x7f7fffff))", [](int a, int) { return a & 0x7f7fffff; }},
      {"(int)(__double_as_longlong(__longlong_as_double(5ll + (a & 7))))",
       [](int a, int) { return 5 + (a & 7); }},
      {"__float2int_rz((a % 1000) * 0.5f)",
       [](int a, int) { return static_cast<int>(static_cast<float>(a % 1000) * 0.5f); }},
      {"__float2int_ru((a % 1000) * 0.5f)",
       [](int a, int) { return static_cast<int>(std::ceil(static_cast<float>(a % 1000) * 0.5f)); }},
      {"(int)__float2uint_rn(2.5f) + (int)__float2uint_rz(2.9f)", [](int, int) { return 4; }},
      {"(int)(__int2float_rn(a % 1000) + __uint2float_rn(7u) + __double2float_rn(0.5))",
       [](int a, int) { return static_cast<int>(static_cast<float>(a % 1000) + 7.5f); }},
      {"(int)llabs((long long)a) == (int)abs((long long)a)", [](int, int) { return 1; }},
      {"__ldg(x + i) + __ldcs(x + i) - __ldca(x + i) - __ldcg(x + i)", [](int, int) { return 0; }},
      {"min(a, b)", [](int a, int b) { return std::min(a, b); }},
      {"max(a, 3)", [](int a, int) { return std::max(a, 3); }},
      {"abs(a / 2)", [](int a, int) { return std::abs(a / 2); }},
      {"__float_as_int(__int_as_float(a & 0x7f7fffff))", [](int a, int) { return a & 0x7f7fffff; }},
      {"__float2int_rn(a * 0.5f)",
       [](int a, int) { return static_cast<int>(std::rint(static_cast<float>(a) * 0.5f)); }},
      {"__float2int_rd(a * 0.25f)",
       [](int a, int) { return static_cast<int>(std::floor(static_cast<float>(a) * 0.25f)); }},
      {"(int)sizeof(uint64_t) + (int)INT_MAX - INT32_MAX + (FLT_MAX > 3e38f) + warpSize",
       [](int, int) { return 8 + 1 + 32; }},
  };
  Case c;
  std::string body;
  for (std::size_t r = 0; r < rows.size(); ++r)
    body += "  out[" + std::to_string(r) + " * n + i] = " + rows[r].expression + ";\n";
  c.source =
      "// plan: launch k<<<1, N>>>(x, y, out, N)\n__global__ void k(const int* x, const int* y, int* out, "
      "int n) {\n  int i = threadIdx.x;\n  int a = x[i], b = y[i];\n" +
      body + "}\n";
  const std::vector<int> x = {0,
                              1,
                              -1,
                              2,
                              255,
                              256,
                              -77,
                              123456789,
                              std::numeric_limits<int>::max(),
                              std::numeric_limits<int>::min(),
                              0x00f0f0f0};
  const std::vector<int> y(x.rbegin(), x.rend());
  c.inputs["x"] = tensor(x);
  c.inputs["y"] = tensor(y);
  c.outputs["out"] = tensor(std::vector<int>(rows.size() * x.size()));
  c.dims["N"] = static_cast<std::int64_t>(x.size());
  const Outcome outcome = run_case(c);
  ASSERT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
  const std::vector<int> out = values<int>(outcome.outputs.at("out"));
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(out[r * x.size() + i], rows[r].expected(x[i], y[i]))
          << rows[r].expression << " a = " << x[i] << " b = " << y[i];
}

TEST(Vocabulary, Atomics) {
  // One counter each, hit by 1,024 threads on 3 CPU threads.
  struct AtomicRow {
    const char* statement;  // on p, an int* that begins at `start`; i is the thread
    int start, expected;
  };
  const std::vector<AtomicRow> rows = {
      {"atomicAdd(p, i)", 0, 1023 * 512},
      {"atomicSub(p, 1)", 0, -1024},
      {"atomicMax(p, i)", -5, 1023},
      {"atomicMin(p, -i)", 5, -1023},
      {"atomicAnd(p, ~(1 << i % 10))", 0xffff, 0xfc00},
      {"atomicOr(p, 1 << i % 10)", 0, 0x3ff},
      {"atomicXor(p, 1 << i % 2)", 0, 0},
      {"atomicExch(p, 7)", 0, 7},
      {"atomicCAS(p, 0, i + 1) ? 0 : atomicExch(p, 99)", 0, 99},
      {"atomicInc((unsigned*)p, 9)", 0, 4},
      {"atomicDec((unsigned*)p, 9)", 0, 6},
      {"atomicAdd((float*)p, 1.f)", 0, 0x44800000},
      {"atomicAdd((unsigned*)p, 2u)", 0, 2048},
      {"atomicMax((unsigned*)p, (unsigned)i)", 0, 1023},
  };
  Case c;
  std::string body, plan = "// plan: copy out <- start\n";
  for (std::size_t r = 0; r < rows.size(); ++r)
    body += "  { int* p = out + " + std::to_string(r) + "; " + rows[r].statement + "; }\n";
  c.source = plan +
             "// plan: launch k<<<8, 128>>>(out, wide)\n__global__ void k(int* out, double* wide) {\n  int i "
             "= blockIdx.x * 128 + threadIdx.x;\n" +
             body + "  atomicAdd(wide, 0.5);\n  atomicAdd((unsigned long long*)(wide + 1), 3ull);\n}\n";
  c.source = "// plan: fill wide 0\n" + c.source;
  std::vector<int> start;
  for (const AtomicRow& row : rows) start.push_back(row.start);
  c.inputs["start"] = tensor(start);
  c.outputs["out"] = tensor(start);
  c.outputs["wide"] = tensor(std::vector<double>(2));
  c.threads = 3;
  const Outcome outcome = run_case(c);
  ASSERT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
  const std::vector<int> out = values<int>(outcome.outputs.at("out"));
  for (std::size_t r = 0; r < rows.size(); ++r) EXPECT_EQ(out[r], rows[r].expected) << rows[r].statement;
  const std::vector<double> wide = values<double>(outcome.outputs.at("wide"));
  EXPECT_EQ(wide[0], 512.0);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(wide[1]), 3072u);
}

TEST(Vocabulary, VectorsHalvesConstantsAndTemplates) {
  struct BlockRow {
    const char* name;
    const char* source;                  // kernel k over floats x[64], out[64]
    std::function<float(int)> expected;  // x[i] = i - 20
  };
  const auto x = [](int i) { return static_cast<float>(i) - 20.f; };
  const std::vector<BlockRow> rows = {
      {"float4",
       "// plan: launch k<<<1, 16>>>(x, out)\n__global__ void k(const float* x, float* out) { int i = "
       "threadIdx.x; float4 v = ((const float4*)x)[i]; v.x += 1.f; v.w *= 2.f; "
       "reinterpret_cast<float4*>(out)[i] = make_float4(v.x, v.y, v.z, v.w); }",
       [&](int i) { return i % 4 == 0   ? x(i) + 1
                           : i % 4 == 3 ? 2 * x(i)
                                        : x(i); }},
      {"float2 through __ldg",
       "// plan: launch k<<<1, 32>>>(x, out)\n__global__ void k(const float2* __restrict__ x, float2* "
       "__restrict__ out) { float2 v = __ldg(x + threadIdx.x); out[threadIdx.x] = make_float2(v.y, v.x); }",
       [&](int i) { return x(i ^ 1); }},
      {"int4 and its members",
       "// plan: launch k<<<1, 16>>>(x, out)\n__global__ void k(const float* x, float* out) { int4 v = "
       "make_int4(1, 2, 3, 4); int i = threadIdx.x * 4; out[i] = v.x; out[i + 1] = v.y; out[i + 2] = v.z; "
       "out[i + 3] = v.w; }",
       [](int i) { return static_cast<float>(i % 4 + 1); }},
      {"half arithmetic rounds each result",
       "// plan: launch k<<<1, 64>>>(x, out)\n#include <cuda_fp16.h>\n__global__ void k(const float* x, "
       "float* out) { __half h = __float2half(x[threadIdx.x]); __half s = __hadd(h, __float2half(2048.f)); "
       "out[threadIdx.x] = __half2float(__hsub(s, __float2half(2048.f))); }",
       [&](int i) {
         float s = x(i) + 2048.f;
         s = s < 2048.f ? s : 2.f * std::nearbyint(s / 2.f);
         return s - 2048.f;
       }},
      {"half2",
       "// plan: launch k<<<1, 32>>>(x, out)\n#include <cuda_fp16.h>\n__global__ void k(const float* x, "
       "float* out) { int i = "
       "threadIdx.x * 2; half2 v = __floats2half2_rn(x[i], x[i + 1]); v = __hfma2(v, __float2half2_rn(2.f), "
       "__float2half2_rn(1.f)); float2 f = __half22float2(v); out[i] = f.x; out[i + 1] = f.y; }",
       [&](int i) { return 2 * x(i) + 1; }},
      {"functions of half",
       "// plan: launch k<<<1, 64>>>(x, out)\n#include <cuda_fp16.h>\n__global__ void k(const float* x, "
       "float* out) { int i = "
       "threadIdx.x; __half a = __float2half_rn(x[i]), b = __int2half_rn(2); float s = 0; s += "
       "__half2float(__hmul(a, b)) - 2 * x[i]; s += __half2float(__hdiv(a, b)) - x[i] / 2; s += "
       "__half2float(__hfma(a, b, b)) - (2 * x[i] + 2); s += __half2float(__hmax(a, b)) - fmaxf(x[i], 2.f); "
       "s += __half2float(__hmin(a, b)) - fminf(x[i], 2.f); s += __half2float(__hneg(a)) + x[i]; s += "
       "__half2float(__habs(a)) - fabsf(x[i]); s += __hgt(a, b) != (x[i] > 2.f); s += __hlt(a, b) != (x[i] < "
       "2.f); s += __hge(a, b) != (x[i] >= 2.f); s += __hle(a, b) != (x[i] <= 2.f); s += __heq(a, b) != "
       "(x[i] == 2.f); s += __hne(a, b) == (x[i] == 2.f); s += __half2float(hsqrt(__float2half(16.f))) - "
       "4.f; s += __half2float(hrcp(b)) - 0.5f; s += __half2float(hrsqrt(__float2half(4.f))) - 0.5f; s += "
       "__half2float(hexp(__float2half(0.f))) - 1.f; s += __half2float(hlog(__float2half(1.f))); s += "
       "__half2int_rn(b) - 2; s += __half2float(__ushort_as_half(__half_as_ushort(a))) - x[i]; a += b; a *= "
       "b; a -= b; a /= b; s += __half2float(a) - (x[i] + 1.f); s += (float)a - __half2float(a); s "
       "+= __hisnan(a); half2 h = make_half2(a, b), g = __halves2half2(b, a); s += __low2float(h) - "
       "__high2float(g); s += __half2float(__low2half(__hadd2(h, g))) - __half2float(__high2half(__hadd2(g, "
       "h))); s += __low2float(__hmul2(h, __half2half2(b))) - 2.f * __half2float(a); out[i] = s; }",
       [](int) { return 0.f; }},
      {"stores that stream",
       "// plan: launch k<<<1, 64>>>(x, out)\n__global__ void k(const float* x, float* out) { int i = "
       "threadIdx.x; if (i % 3 == 0) __stcs(out + i, x[i]); else if (i % 3 == 1) __stcg(out + i, x[i]); else "
       "__stwt(out + i, x[i]); }",
       [&](int i) { return x(i); }},
      {"assert and printf that hold still",
       "// plan: launch k<<<1, 64>>>(x, out)\n#include <assert.h>\n__global__ void k(const float* x, float* "
       "out) { int i = threadIdx.x; assert(i < 64); printf(\"%d\\n\", i); __builtin_assume(i >= 0); out[i] = "
       "__builtin_expect(i >= 0, 1) ? x[i] : 0.f; __threadfence(); __threadfence_block(); "
       "__threadfence_system(); }",
       [&](int i) { return x(i); }},
      {"bfloat16",
       "// plan: launch k<<<1, 64>>>(x, out)\n#include <cuda_bf16.h>\n__global__ void k(const float* x, "
       "float* out) { __nv_bfloat16 "
       "b = __float2bfloat16(x[threadIdx.x] + 256.5f); out[threadIdx.x] = __bfloat162float(b) - 256.f; }",
       [&](int i) {
         const float v = x(i) + 256.5f;
         return v < 256.f ? std::nearbyint(v) - 256.f : 2.f * std::nearbyint(v / 2.f) - 256.f;
       }},
      {"__constant__ filled by the plan",
       "// plan: const W <- x\n// plan: launch k<<<1, 64>>>(out)\n__constant__ float W[64];\n__global__ void "
       "k(float* out) { out[threadIdx.x] = W[63 - threadIdx.x]; }",
       [&](int i) { return x(63 - i); }},
      {"__constant__ with initial values",
       "// plan: launch k<<<1, 64>>>(x, out)\n__constant__ float c[2] = {10.f, 20.f};\n__device__ const int "
       "d = 3;\nconstexpr float e = 0.5f;\n__global__ void k(const float* x, float* out) { out[threadIdx.x] "
       "= x[threadIdx.x] + c[threadIdx.x % 2] + d + e; }",
       [&](int i) { return x(i) + (i % 2 ? 20.f : 10.f) + 3.5f; }},
      {"template by name expression",
       "// plan: launch k<float, 2 + 1><<<2, 32>>>(x, out)\ntemplate <typename T, int F> __global__ void "
       "k(const T* x, T* out) { int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = x[i] * F; }",
       [&](int i) { return 3 * x(i); }},
      {"device functions that ask for their thread",
       "// plan: launch k<<<dim3(2, 2), dim3(4, 2, 2)>>>(x, out)\n__device__ int flat();\ntemplate <int K> "
       "__device__ __forceinline__ int times() { return flat() * K; }\n__device__ int flat() { int block = "
       "blockIdx.y * gridDim.x + blockIdx.x; return ((block * blockDim.z + threadIdx.z) * blockDim.y + "
       "threadIdx.y) * blockDim.x + threadIdx.x; }\n__global__ void k(const float* x, float* out) { int i = "
       "times<3>() / 3; out[i] = x[i] + 1.f; }",
       [&](int i) { return x(i) + 1; }},
      {"macros over thread numbers",
       "// plan: launch k<<<2, 32>>>(x, out)\n#define I \\\n  (blockIdx.x * blockDim.x + "
       "threadIdx.x)\n#define GET(i) get(i)\n__device__ float get(float v) { return v + blockIdx.x; "
       "}\n__global__ void k(const float* x, float* out) { out[I] = GET(x[I]); }",
       [&](int i) { return x(i) + static_cast<float>(i / 32); }},
      {"a struct with methods and an aligned template",
       "// plan: launch k<<<1, 16>>>(x, out)\ntemplate <typename T, int N> struct __align__(sizeof(T) * N) "
       "Pack { T v[N]; __device__ T sum() const { T s = 0; for (int i = 0; i < N; ++i) s += v[i]; return s; "
       "} };\n__global__ void k(const float* x, float* out) { int i = threadIdx.x; Pack<float, 4> p = "
       "*reinterpret_cast<const Pack<float, 4>*>(x + 4 * i);\n#pragma unroll\n for (int j = 0; j < 4; ++j) "
       "out[4 * i + j] = p.sum(); }",
       [&](int i) { return 4 * x(i / 4 * 4) + 6; }},
      {"several launches, a temporary and a fill",
       "// plan: temp t float32[64]\n// plan: fill t 2\n// plan: launch a<<<1, 64>>>(x, t)\n// plan: copy "
       "out <- t\n// plan: launch b<<<1, 64>>>(out)\n__global__ void a(const float* x, float* t) { "
       "t[threadIdx.x] *= x[threadIdx.x]; }\n__global__ void b(float* o) { o[threadIdx.x] += 1.f; }",
       [&](int i) { return 2 * x(i) + 1; }},
      {"integers and floats as arguments",
       "// plan: launch k<<<1, 64>>>(x, out, i64(3), f32(0.5), f64(0.25), 7)\n__global__ void k(const float* "
       "x, float* out, long long a, float b, double c, int d) { out[threadIdx.x] = x[threadIdx.x] + a + b + "
       "(float)c + d; }",
       [&](int i) { return x(i) + 10.75f; }},
  };
  for (const BlockRow& row : rows) {
    SCOPED_TRACE(row.name);
    Case c;
    c.source = row.source;
    std::vector<float> in;
    for (int i = 0; i < 64; ++i) in.push_back(x(i));
    c.inputs["x"] = tensor(in);
    c.outputs["out"] = tensor(std::vector<float>(64));
    const Outcome outcome = run_case(c);
    ASSERT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
    const std::vector<float> out = values<float>(outcome.outputs.at("out"));
    for (int i = 0; i < 64; ++i)
      ASSERT_EQ(out[static_cast<std::size_t>(i)], row.expected(i)) << "element " << i;
  }
}

TEST(Vocabulary, GuardsAtTheFrontOfAKernel) {
  // A block of 16 x 8 threads, i = x + 16 y; each writes out[i] = 1 where the condition lets it.
  const auto in = [](const std::string& condition) { return "if (" + condition + ") out[i] = 1.f;"; };
  const std::vector<std::pair<std::string, std::function<bool(int, int)>>> rows = {
      {in("i < N"), [](int x, int y) { return x + 16 * y < 100; }},
      {"if (i >= N) return; out[i] = 1.f;", [](int x, int y) { return x + 16 * y < 100; }},
      {"if (i >= N || x > 12) return; out[i] = 1.f;",
       [](int x, int y) { return x + 16 * y < 100 && x <= 12; }},
      {"if (x < 3) return; if (y > 5) return; if (i > 90) return; out[i] = 1.f;",
       [](int x, int y) { return x >= 3 && y <= 5 && x + 16 * y <= 90; }},
      {in("x >= 5 && x < 9"), [](int x, int) { return x >= 5 && x < 9; }},
      {in("x >= 9 && x < 5"), [](int, int) { return false; }},
      {in("x > 14 && y < 3"), [](int x, int y) { return x > 14 && y < 3; }},
      {in("x < 5 || x > 10"), [](int x, int) { return x < 5 || x > 10; }},
      {in("threadIdx.x - 3u > 4u"), [](int x, int) { return static_cast<unsigned>(x) - 3u > 4u; }},
      {in("x % 3 == 0"), [](int x, int) { return x % 3 == 0; }},
      {"int r = x % 4; " + in("r < 2"), [](int x, int) { return x % 4 < 2; }},
      {"int q = x * x - 10 * x; " + in("q < 0"), [](int x, int) { return x * x - 10 * x < 0; }},
      {in("3 * x + 1 <= y * 5"), [](int x, int y) { return 3 * x + 1 <= 5 * y; }},
      {in("!(x < 5)"), [](int x, int) { return x >= 5; }},
      {"unsigned char c = x * 20; " + in("c < 100"), [](int x, int) { return x * 20 % 256 < 100; }},
      {"short c = x * 6000; " + in("c >= 0"),
       [](int x, int) { return static_cast<std::int16_t>(x * 6000) >= 0; }},
      {"int c = (unsigned char)(x * 20); " + in("c < 100"), [](int x, int) { return x * 20 % 256 < 100; }},
      {in("(uint8_t)(x * 20) < 100"), [](int x, int) { return x * 20 % 256 < 100; }},
      {"int o = N - 105; bool b = x + o; " + in("b > 0"), [](int x, int) { return x != 5; }},
      {in("(long)x * 20 < 100"), [](int x, int) { return x * 20 < 100; }},
      {"if (x < 5) out[i] = 1.f; else out[i] = 0.f;", [](int x, int) { return x < 5; }},
      {"if (x < 5) out[i] = 1.f; if (x > 12) out[i] = 1.f;", [](int x, int) { return x < 5 || x > 12; }},
      {"if (x < 5) for (int q = 0; q < 1; ++q) out[i] = 1.f;", [](int x, int) { return x < 5; }},
      {"out[i] = 1.f; if (x < 5) return; out[i] = 0.f;", [](int x, int) { return x < 5; }},
  };
  for (const auto& [body, passes] : rows) {
    SCOPED_TRACE(body);
    Case c;
    c.source =
        "// plan: fill out 0\n// plan: launch k<<<1, dim3(16, 8)>>>(x, out, 100)\n__global__ void k(const "
        "float* in, float* out, int N) {\n"
        "  int x = threadIdx.x, y = threadIdx.y;\n  int i = y * 16 + x;\n  " +
        body + "\n}\n";
    c.inputs["x"] = tensor(std::vector<float>(1));
    c.outputs["out"] = tensor(std::vector<float>(128));
    const Outcome outcome = run_case(c);
    ASSERT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
    const std::vector<float> out = values<float>(outcome.outputs.at("out"));
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 16; ++x)
        ASSERT_EQ(out[static_cast<std::size_t>(16 * y + x)], passes(x, y) ? 1.f : 0.f) << x << ", " << y;
  }
}

TEST(Vocabulary, ArgumentsMustFitTheSignature) {
  struct BadRow {
    const char* arguments;
    const char* detail;
  };
  for (const BadRow& row :
       {BadRow{"(x, out)", "takes 3 arguments"}, BadRow{"(x, out, f32(1))", "`N`"},
        BadRow{"(x, out, i64(1))", "`N`"}, BadRow{"(x, 5, 1)", "`out`"}, BadRow{"(x, out, x)", "`N`"}}) {
    Case c;
    c.source = std::string("// plan: launch k<<<1, 1>>>") + row.arguments +
               "\n__global__ void k(const float* x, float* out, int N) { out[0] = x[0] + N; }\n";
    c.inputs["x"] = tensor(std::vector<float>(1));
    c.outputs["out"] = tensor(std::vector<float>(1));
    const Outcome outcome = run_case(c);
    EXPECT_EQ(outcome.verdict, Verdict::kLaunchError) << outcome.detail;
    EXPECT_NE(outcome.detail.find(row.detail), std::string::npos) << outcome.detail;
  }
}

}  // namespace
}  // namespace warpsmith::device

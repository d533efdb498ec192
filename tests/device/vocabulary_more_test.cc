// What published kernels use of CUDA besides the usual: each row is the body of a kernel that sets `ok` where
// all is as on a GPU.
#include <gtest/gtest.h>

#include "twin_fixture.h"

namespace warpsmith::device {
namespace {

struct Row {
  const char* front;  // in front of the kernel
  const char* body;   // v = x[i], always between 1 and 2; `ok` is true when it begins
};

Outcome run_row(const Row& row) {
  Case c;
  c.source = std::string("// plan: launch k<<<2, 32>>>(x, out, N)\n") + row.front +
             "\n__global__ void k(const float* x, float* out, int n) {\n"
             "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n"
             "  float v = x[i];\n  bool ok = true;\n  " +
             row.body + "\n  out[i] = ok ? 2 * v : 0;\n}\n";
  std::vector<float> x;
  for (int i = 0; i < 64; ++i) x.push_back(1.f + static_cast<float>(i) / 64);
  c.inputs["x"] = tensor(x);
  c.outputs["out"] = tensor(std::vector<float>(64));
  c.dims["N"] = 64;
  return run_case(c);
}

void check_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.front) + row.body);
    const Outcome outcome = run_row(row);
    EXPECT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
    if (outcome.verdict != Verdict::kOk) continue;
    const std::vector<float> out = values<float>(outcome.outputs.at("out"));
    for (int i = 0; i < 64; ++i)
      ASSERT_EQ(out[static_cast<std::size_t>(i)], 2 * (1.f + static_cast<float>(i) / 64)) << "element " << i;
  }
}

TEST(MoreVocabulary, NamesOfTheCLibrary) {
  check_rows({
      {"#include <string.h>\n#include <stdio.h>",
       "float a[4] = {v, 0, 0, 0}, b[4]; memcpy(b, a, sizeof a); memset(a, 0, sizeof a); "
       "ok = b[0] == v && a[0] == 0; const float* p = NULL; ok = ok && p == NULL; printf(\"%f\", v);"},
      {"#include <cstring>\n#include <cstdlib>\n#include <stdbool.h>\n#include <cstdio>",
       "ok = offsetof(float4, z) == 8;"
       "static_assert(SIZE_MAX == 18446744073709551615ul && INT64_MIN < 0 && UINT16_MAX == 65535);"},
      {"",
       "ok = isnan(nanf(\"\")) && isnan(nan(\"\")) && llrintf(v * 0) == 0 && llrint(2.5) == 2 && "
       "llroundf(2.5f) == 3 && lround(-2.5) == -3 && lrint(3.5) == 4;"},
      {"#include <math_constants.h>",
       "ok = v < CUDART_INF && CUDART_INF == CUDART_INF_F && isnan(CUDART_NAN) && CUDART_PI > 3.14 && "
       "CUDART_LN2_F < 0.7f && -CUDART_MAX_NORMAL_F < CUDART_NEG_ZERO_F && CUDART_L2E_F > 1.44f && "
       "CUDART_SQRT_2PI > 2.5 && CUDART_TWO_TO_23_F == 8388608.f && __float_as_uint(CUDART_NAN_F) == "
       "0x7fffffffu;"},
      {"#include <cstdint>\n#include <cstddef>\n#include <cmath>",
       "std::size_t a = 2; std::int32_t b = 2; std::uint8_t c = 1; std::ptrdiff_t d = 0; "
       "ok = std::sqrt(v * v) - v < 1e-6f && std::exp(0.f) == 1.f && std::abs(-v) == v && std::fabs(-v) == v "
       "&& std::fmax(v, 0.f) == v && std::isnan(v) == 0 && a == b * c + d && std::floor(2.5f) == 2.f && "
       "std::pow(2.f, 2.f) == 4.f;"},
      {"#if defined(__WARPSMITH_TWIN__) && (__CUDACC_VER_MAJOR__ < 13 || CUDART_VERSION < 13000 || "
       "CUDA_VERSION < 13000 || __CUDACC_VER_MINOR__ != 0)\n#error the twin is CUDA 13.0\n#endif",
       ""},
  });
}

TEST(MoreVocabulary, IntegersFromFloatsSaturate) {
  check_rows({
      {"#include <math_constants.h>",
       "float big = v * 1e20f, none = __int_as_float(0x7fc00000 + i); "
       "ok = __float2int_rn(big) == 2147483647 && __float2int_rz(-big) == -2147483647 - 1 && "
       "__float2int_rd(none) == 0 && __float2int_ru(CUDART_INF_F) == 2147483647 && "
       "__float2int_rz(2147483520.f) == 2147483520 && __float2int_rn(-2147483648.f) == -2147483647 - 1;"},
      {"",
       "float big = v * 1e20f, none = __int_as_float(0x7fc00000 + i); "
       "ok = __float2uint_rn(-v) == 0u && __float2uint_rz(big) == 0xffffffffu && __float2uint_rd(none) == "
       "0u && __float2uint_ru(1.25f) == 2u && __float2uint_rz(4294967040.f) == 4294967040u;"},
      {"",
       "double big = v * 1e20, none = __longlong_as_double(0x7ff8000000000000ll + i); "
       "ok = __double2int_rn(big) == 2147483647 && __double2int_rz(-big) == -2147483647 - 1 && "
       "__double2int_rd(none) == -2147483647 - 1 && __double2uint_rn(none) == 0x80000000u && "
       "__double2int_ru(1.5) == 2 && __double2int_rz(2147483647.0) == 2147483647;"},
      {"",
       "float big = v * 1e20f, none = __int_as_float(0x7fc00000 + i); "
       "ok = __float2ll_rn(big) == LLONG_MAX && __float2ll_rz(-big) == LLONG_MIN && __float2ll_rd(none) "
       "== LLONG_MIN && __float2ull_rn(-v) == 0 && __float2ull_rz(big) == ULLONG_MAX && "
       "__double2ll_rn(2.5) == 2 && __double2ull_ru(2.5) == 3 && __float2ll_rd(-2.5f) == -3;"},
      {"",
       "int huge = 16777217 + (i & 0); "
       "ok = __int2float_rn(huge) == 16777216.f && __int2float_ru(huge) == 16777218.f && "
       "__int2float_rd(-huge) == -16777218.f && __int2float_rz(-huge) == -16777216.f && "
       "__uint2float_rz(0xffffffffu) == 4294967040.f && __ll2float_ru(1) == 1.f && "
       "__ull2float_rn(ULLONG_MAX) == 18446744073709551616.f && __ull2float_rz(ULLONG_MAX) < "
       "18446744073709551616.f && __ll2float_rd(9007199791611905ll) == 9007199254740992.f;"},
      {"",
       "ok = __uint2double_rn(7u) == 7.0 && __int2double_rn(-7) == -7.0 && __ll2double_rn(5) == 5.0 && "
       "__hiloint2double(0x40000000, 0) == 2.0 && __double2hiint(2.0) == 0x40000000 && "
       "__double2loint(2.0) == 0 && __double2float_rz(0.1) < 0.1 && __double2float_ru(0.1) > 0.1;"},
  });
}

TEST(MoreVocabulary, DirectedRounding) {
  check_rows({
      {"",
       "float a = v * 0 + 1.f, tiny = 1e-10f * a; "
       "ok = __fadd_rz(a, tiny) == 1.f && __fadd_ru(a, tiny) == 1.00000012f && __fadd_rd(a, -tiny) < 1.f "
       "&& __fsub_rz(a, tiny) == 0.99999994f && __fmul_ru(a + 1.2e-7f, a + 1.2e-7f) == 1.00000036f && "
       "__fmul_rd(a + 1.2e-7f, a + 1.2e-7f) == 1.00000024f;"},
      {"",
       "float a = v * 0 + 3.f; "
       "ok = __fdiv_rd(1.f, a) < __fdiv_ru(1.f, a) && __fdiv_ru(6.f, a) == 2.f && __frcp_rz(a) == "
       "__fdiv_rz(1.f, a) && __fsqrt_rd(a) < __fsqrt_ru(a) && __fsqrt_rz(9.f) == 3.f && "
       "__fmaf_rz(a, a, 1e-10f) == 9.f && __fmaf_ru(a, a, 1e-10f) > 9.f && __fmul_rz(1e30f * a, 1e30f) "
       "== FLT_MAX && __fdiv_rn(1.f, a) == 1.f / 3.f;"},
      {"",
       "double a = v; ok = __dadd_rn(a, a) == 2 * a && __dmul_rn(a, 2.0) == 2 * a && __dsub_rn(a, a) == 0 "
       "&& __ddiv_rn(a, a) == 1.0 && __drcp_rn(2.0) == 0.5 && __dsqrt_rn(4.0) == 2.0 && __fma_rn(2.0, "
       "3.0, 1.0) == 7.0;"},
  });
}

TEST(MoreVocabulary, RarerFunctions) {
  check_rows({
      {"#include <math_constants.h>",
       "ok = fabsf(erfinvf(erff(v * 0.5f)) - v * 0.5f) < 1e-5f && erfinvf(1.f) == CUDART_INF_F && "
       "isnan(erfinvf(2.f)) && fabsf(erfcinvf(erfcf(v)) - v) < 2e-5f && fabsf(normcdfinvf(0.975f) - "
       "1.959964f) < 1e-5f && fabsf(erfcxf(v) - expf(v * v) * erfcf(v)) < 1e-5f && erfcxf(1e4f) > 5e-5f;"},
      {"",
       "float s, c; sincospif(v, &s, &c); "
       "ok = sinpif(1.f) == 0.f && cospif(0.5f) == 0.f && sinpif(0.5f) == 1.f && cospif(1.f) == -1.f && "
       "fabsf(sinpif(v) - sinf(3.14159265f * v)) < 1e-6f && s == sinpif(v) && c == cospif(v) && "
       "sinpif(-2.5f) == -1.f;"},
      {"",
       "ok = norm3df(2.f, 3.f, 6.f) == 7.f && rnorm3df(0.f, 0.f, 4.f) == 0.25f && norm4df(1.f, 1.f, 1.f, "
       "1.f) == 2.f && rnorm4df(1.f, 1.f, 1.f, 1.f) == 0.5f && rhypotf(3.f, 4.f) == 0.2f && rhypot(3.0, "
       "4.0) == 0.2 && rcbrt(8.0) == 0.5;"},
      {"",
       "float whole; double dwhole; ok = ilogbf(v * 8.f) == (v < 2.f ? 3 : 4) && logbf(8.f) == 3.f && "
       "scalbnf(v, 3) == 8 * v && nextafterf(1.f, 2.f) == 1.00000012f && nextafterf(1.f, 0.f) == "
       "0.99999994f && nextafterf(0.f, -1.f) == -1.4e-45f && modff(2.5f, &whole) == 0.5f && whole == 2.f "
       "&& modf(2.5, &dwhole) == 0.5 && ilogbf(1e-40f) == -133;"},
      {"",
       "ok = __mul64hi(1ll << 40, 1ll << 40) == 1ll << 16 && __rhadd(3, 4) == 4 && __hadd(-3, -4) == -4 && "
       "__uhadd(0xffffffffu, 1u) == 0x80000000u && __urhadd(1u, 2u) == 2u && __usad(1u, 5u, 2u) == 6u && "
       "__funnelshift_rc(1u, 2u, 40) == 2u && __funnelshift_lc(1u, 2u, 32) == 1u && fdim(3.0, 1.0) == "
       "2.0 && remainder(5.0, 3.0) == -1.0 && ldexp(1.0, 3) == 8.0;"},
      {"",
       "ok = __vadd4(0x01ff0102u, 0x01010101u) == 0x02000203u && __vsub2(0x00010000u, 0x00010001u) == "
       "0x0000ffffu && __vabsdiffu4(0x01050000u, 0x03020000u) == 0x02030000u && __vmaxu4(0x01ff0002u, "
       "0x02000103u) == 0x02ff0103u && __vmins2(0xffff0001u, 0x00010002u) == 0xffff0001u && "
       "__dp2a_lo(0x00020003, 0x0403, 1) == 1 + 3 * 3 + 2 * 4;"},
  });
}

TEST(MoreVocabulary, Halves) {
  const char* half = "#include <cuda_fp16.h>";
  check_rows({
      {half,
       "half2 a(1.f, 2.f); half2 b = a; a -= b; a += b; a *= b; a /= b; ok = a == b && !(a != b); a = -a; "
       "ok = ok && __low2float(a) == -1.f && (a < b) && !(a > b); ++a; ok = ok && __low2float(a) == 0.f; "
       "a--; ok = ok && __high2float(a) == -2.f;"},
      {half,
       "half h = 1; h++; ++h; --h; ok = (float)h == 2.f; half a = (short)1, b = 1L, c = 1ull, d = "
       "(unsigned short)1, e = 1.0, f = (long long)1, g = 1ul; ok = ok && (float)(a + b + c + d + e + f "
       "+ g) == 7.f && (int)h == 2 && !!h;"},
      {half,
       "half2 a = __floats2half2_rn(4.f, 16.f); ok = __low2float(h2sqrt(a)) == 2.f && "
       "__high2float(h2rsqrt(a)) == 0.25f && __high2float(h2exp2(h2log2(a))) == 16.f && "
       "__low2float(h2rcp(a)) == 0.25f && (float)hexp2(half(3.f)) == 8.f && (float)hsin(half(0.f)) == 0.f "
       "&& (float)hcos(half(0.f)) == 1.f && (float)hfloor(half(2.5f)) == 2.f && (float)hceil(half(2.5f)) "
       "== 3.f && (float)hrint(half(2.5f)) == 2.f && (float)htrunc(half(-2.5f)) == -2.f && "
       "(float)htanh(half(0.f)) == 0.f && (float)hlog2(half(8.f)) == 3.f && (float)hlog10(half(100.f)) "
       "== 2.f && (float)hexp10(half(2.f)) == 100.f && __low2float(h2exp(a)) > 54.f && "
       "__low2float(h2log(a)) < 1.39f && __low2float(h2floor(a)) == 4.f;"},
      {half,
       "half2 a = __floats2half2_rn(1.f, 2.f); ok = __low2float(__high2half2(a)) == 2.f && "
       "__high2float(__low2half2(a)) == 1.f && __low2float(__lowhigh2highlow(a)) == 2.f && "
       "__high2float(__lows2half2(a, a)) == 1.f && __hbeq2(a, a) && __hbge2(a, a) && !__hbgt2(a, a) && "
       "__low2float(__hge2(a, a)) == 1.f && __low2float(__hgt2(a, a)) == 0.f && "
       "__low2float(__hneg2(__habs2(a))) == -1.f && __high2float(__hadd2_sat(a, a)) == 1.f && "
       "__low2float(__hmin2(a, a)) == 1.f && __hle2_mask(a, __high2half2(a)) == 0xffffffffu && "
       "__low2float(__hfma2_relu(a, __hneg2(a), a)) == 0.f && __high2float(__hmul2_rn(a, a)) == 4.f;"},
      {half,
       "half none = __ushort_as_half(0x7e00), one = 1.f; ok = __hisnan(__hmax_nan(none, one)) && "
       "(float)__hmax(none, one) == 1.f && !__hne(none, one) && __hneu(none, one) && __hequ(none, none) "
       "&& !__hbne2(half2(none, one), half2(one, none)) && (float)__hadd_sat(one, one) == 1.f && "
       "(float)__hsub_sat(half(0.f), one) == 0.f && (float)__hfma_relu(one, half(-2.f), one) == 0.f && "
       "__hisinf(__ushort_as_half(0xfc00)) == -1 && __hisinf(one) == 0 && (float)__hadd_sat(none, one) "
       "== 0.f && (float)__hmin_nan(one, half(2.f)) == 1.f;"},
      {half,
       "__half_raw q; q.x = 0x4000; half h(q); ok = (float)h == 2.f && __half_as_short(h) == 0x4000 && "
       "(float)__short_as_half(0x3c00) == 1.f && __half_raw(h).x == 0x4000; h = q; __half2_raw w; w.x = "
       "0x4000; w.y = 0x3c00; half2 p(w); ok = ok && __low2float(p) == 2.f && __half2_raw(p).y == "
       "0x3c00;"},
      {half,
       "half h = 2.5f, big = 65504.f; ok = __half2int_rn(h) == 2 && __half2int_ru(h) == 3 && "
       "__half2int_rz(-h) == -2 && __half2int_rd(-h) == -3 && __half2uint_rz(-h) == 0u && "
       "__half2short_rn(big) == 32767 && __half2ushort_rn(h) == 2 && __half2ll_rz(h) == 2 && "
       "__half2ull_ru(h) == 3 && __half2char_rz(big) == 127 && (float)__uint2half_rn(3u) == 3.f && "
       "(float)__int2half_rz(2049) == 2048.f && (float)__int2half_ru(2049) == 2050.f && "
       "(float)__short2half_rn(-3) == -3.f && (float)__ll2half_rn(3) == 3.f;"},
      {half,
       "float a = 1.0001f + v * 0; ok = (float)__float2half_rz(a) == 1.f && (float)__float2half_ru(a) > "
       "1.f && (float)__float2half_rd(-a) < -1.f && (float)__float2half_rz(1e6f * a) == 65504.f && "
       "(float)__float2half_ru(1e-12f * a) == 5.9604645e-8f && (float)__double2half(0.5) == 0.5f && "
       "(float)__float2half_rd(1.f) == 1.f;"},
      {half,
       "__shared__ half2 s; if (threadIdx.x == 0) s = __float2half2_rn(0.f); __syncthreads(); "
       "atomicAdd(&s, __floats2half2_rn(1.f, 0.5f)); __syncthreads(); ok = __low2float(s) == 32.f && "
       "__high2float(s) == 16.f;"},
  });
}

TEST(MoreVocabulary, Bfloat16) {
  const char* bf16 = "#include <cuda_bf16.h>";
  check_rows({
      {bf16,
       "__nv_bfloat162 a = __float2bfloat162_rn(1.f); a = __hadd2(a, "
       "__bfloat162bfloat162(__float2bfloat16(1.f))); a = __hfma2(a, __floats2bfloat162_rn(1.f, 1.f), "
       "make_bfloat162(__float2bfloat16(0.f), __float2bfloat16(0.f))); float2 f = __bfloat1622float2(a); "
       "ok = f.x == 2.f && __bfloat162float(__low2bfloat16(a)) == 2.f && __low2float(a) == 2.f && "
       "__high2float(a) == 2.f && __bfloat162float(__high2bfloat16(a)) == 2.f;"},
      {bf16,
       "__nv_bfloat16 a = __int2bfloat16_rn(2), b = __double2bfloat16(1.0); unsigned short u = "
       "__bfloat16_as_ushort(a); ok = (float)__ushort_as_bfloat16(u) == 2.f && __bfloat16_as_short(b) == "
       "0x3f80 && (float)__short_as_bfloat16(0x3f80) == 1.f && __bfloat162int_rn(a) == 2 && __hgt(a, b); "
       "__nv_bfloat162 z = __float22bfloat162_rn(make_float2(v, 1.f)); ok = ok && (float)z.y == 1.f;"},
      {bf16,
       "ok = (float)__float2bfloat16_rz(1.00390625f + 1e-3f) == 1.f && "
       "(float)__float2bfloat16_ru(1.0001f) == 1.0078125f && (float)hexp(__float2bfloat16(0.f)) == 1.f && "
       "__low2float(h2sqrt(__float2bfloat162_rn(4.f))) == 2.f && (float)__nv_bfloat16(3ul) == 3.f && "
       "(float)__nv_bfloat16(1.00390625000001) == 1.0078125f; __nv_bfloat16_raw q; q.x = 0x4000; "
       "nv_bfloat16 h(q); ok = ok && (float)h == 2.f && __nv_bfloat16_raw(h).x == 0x4000; h++; ok = ok "
       "&& (float)h == 3.f;"},
      {bf16,
       "__shared__ __nv_bfloat162 s; if (threadIdx.x == 0) s = __float2bfloat162_rn(0.f); "
       "__syncthreads(); atomicAdd(&s, __floats2bfloat162_rn(1.f, 0.5f)); __syncthreads(); ok = "
       "__low2float(s) == 32.f && __high2float(s) == 16.f;"},
  });
}

TEST(MoreVocabulary, AtomicsLoadsAndGroups) {
  const char* groups =
      "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\nnamespace cg = "
      "cooperative_groups;";
  check_rows({
      {"",
       "__shared__ int c; if (threadIdx.x == 0) c = 0; __syncthreads(); atomicAdd_block(&c, 1); "
       "atomicMax_block(&c, 1); atomicOr_system(&c, 64); atomicAnd_block(&c, -1); atomicCAS_block(&c, -1, "
       "1); atomicMin_system(&c, 1000); atomicXor_block(&c, 0); atomicSub_system(&c, 0); __syncthreads(); "
       "ok = c >= 64; __syncthreads(); atomicExch_block(&c, 1); atomicInc_system((unsigned*)&c, 5u);"},
      {"",
       "ok = __ldlu(x + i) == v && __ldcv(x + i) == v; __stwb(out + i, 1.0); ok = ok && out[i] == 1.f; "
       "__stcs(out + i, 2.0); ok = ok && out[i] == 2.f; __stcg(out + i, 3); __stwt(out + i, 4u); ok = ok && "
       "out[i] == 4.f;"},
      {groups,
       "auto t = cg::tiled_partition<32>(cg::this_thread_block()); unsigned q = cg::reduce(t, 1u << "
       "t.thread_rank(), cg::bit_or<unsigned>()); ok = q == ~0u && cg::reduce(t, ~0u, "
       "cg::bit_and<unsigned>()) == ~0u && cg::reduce(t, 1u, cg::bit_xor<unsigned>()) == 0u; int n_ = "
       "0; cg::invoke_one(t, [&] { n_ = 1; }); ok = ok && (n_ == 1) == (t.thread_rank() == 0);"},
      {groups,
       "auto g = cg::this_grid(); ok = g.block_index().x == blockIdx.x && g.dim_blocks().x == "
       "gridDim.x && g.num_blocks() == 2;"},
      {groups,
       "auto b = cg::this_thread_block(); auto t = cg::tiled_partition<16>(b); ok = t.match_any(i % 2) "
       "== (i % 2 ? 0xaaaau : 0x5555u); int all = 0; ok = ok && t.match_all(5, all) == 0xffffu && all; "
       "auto w = cg::tiled_partition(b, 8); ok = ok && w.size() == 8 && w.thread_rank() == i % 8; "
       "w.sync(); cg::thread_group g = b; g.sync(); ok = ok && g.size() == 32; "
       "cg::thread_group h = t; ok = ok && h.thread_rank() == i % 16;"},
  });
}

TEST(MoreVocabulary, FormsOfDeclarations) {
  check_rows({
      {"",
       "__shared__ struct { float a[32]; int b; } s; s.a[threadIdx.x] = v; __syncthreads(); ok = "
       "s.a[threadIdx.x] == v;"},
      {"",
       "__shared__ union { float a[32]; int b[32]; } s; s.a[threadIdx.x] = v; __syncthreads(); ok = "
       "s.b[threadIdx.x] == __float_as_int(v);"},
      {"",
       "__shared__ struct Pair { float a; int b; } s[32], t; s[threadIdx.x].a = v; t.b = 1; "
       "__syncthreads(); Pair p = s[threadIdx.x]; ok = p.a == v && t.b == 1;"},
      {"#define PRAGMA_UNROLL _Pragma(\"unroll\")\n#define CUTLASS_NO _Pragma(\"unroll 1\")",
       "float s = 0; PRAGMA_UNROLL\n for (int k = 0; k < 4; k++) s += v; CUTLASS_NO\n for (int k = 0; k < 4; "
       "k++) s -= v; ok = s == 0.f;"},
      {"",
       "__attribute__((unused)) int q = 1; __attribute__((aligned(16))) float a[4] = {v}; ok = a[0] == v;"},
      {"#if 0\n#include <vector>\n#if 1\n#include <set>\n#else\n#include <map>\n#endif\n#endif",
       "ok = true;"},
      {"", "#if 0\n asm volatile(\"nop;\"); ok = false;\n#endif\n"},
  });
}

TEST(MoreVocabulary, PointersThatAreRestricted) {
  Case c;
  c.source =
      "// plan: launch k<4><<<1, 16>>>(x, out)\ntemplate <int T> __global__ void k(const float* __restrict__ "
      "x, float* __restrict__ out) {\n  const float* __restrict__ p = x + threadIdx.x * T;\n  float4 v = "
      "reinterpret_cast<const float4*>(&p[0])[0];\n  float s[4];\n  reinterpret_cast<int4&>(s) = "
      "reinterpret_cast<const int4&>(v);\n  v.x = s[0] * 2;\n  unsigned long long at = "
      "reinterpret_cast<unsigned long long>(p);\n  v.y += at == 0;\n  "
      "reinterpret_cast<float4*>(&out[threadIdx.x * T])[0] = v;\n}\n";
  std::vector<float> x;
  for (int i = 0; i < 64; ++i) x.push_back(static_cast<float>(i));
  c.inputs["x"] = tensor(x);
  c.outputs["out"] = tensor(x);
  const Outcome outcome = run_case(c);
  ASSERT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
  EXPECT_EQ(values<float>(outcome.outputs.at("out"))[4], 8.f);
  EXPECT_EQ(values<float>(outcome.outputs.at("out"))[5], 5.f);
}

TEST(MoreVocabulary, MisalignedThroughAMacro) {
  for (const char* four :
       {"(reinterpret_cast<float4*>(&(v))[0])", "(*(float4*)(&(v)))", "((float4*)&(v))[0]"}) {
    Case c;
    c.source = std::string("// plan: launch k<<<1, 1>>>(x, out)\n#define FOUR(v) ") + four +
               "\n__global__ void k(float* x, float* out) {\n  float4 a = FOUR(x[1]);\n  out[0] = a.x;\n}\n";
    c.inputs["x"] = tensor(std::vector<float>(64));
    c.outputs["out"] = tensor(std::vector<float>(64));
    EXPECT_EQ(run_case(c).verdict, Verdict::kCrash) << four;
    const std::size_t at = c.source.find("x[1]");
    c.source.replace(at, 4, "x[4]");
    EXPECT_EQ(run_case(c).verdict, Verdict::kOk) << four;
  }
}

TEST(MoreVocabulary, LaunchBounds) {
  const auto run = [](const std::string& kernel, const std::string& name = "k") {
    Case c;
    c.source = "// plan: launch " + name + "<<<1, 256>>>(x, out)\n" + kernel +
               "(const float* x, float* out) { out[threadIdx.x] = 2.f * x[threadIdx.x]; }\n";
    c.inputs["x"] = tensor(std::vector<float>(256));
    c.outputs["out"] = tensor(std::vector<float>(256));
    return run_case(c);
  };
  const Outcome tight = run("__global__ void __launch_bounds__(128) k");
  EXPECT_EQ(tight.verdict, Verdict::kLaunchError);
  EXPECT_NE(tight.detail.find("more threads a block than"), std::string::npos) << tight.detail;
  EXPECT_EQ(run("template <int T> __launch_bounds__(T, 2) __global__ void k", "k<64>").verdict,
            Verdict::kLaunchError);
  EXPECT_EQ(run("template <int T> __launch_bounds__(T, 2) __global__ void k", "k<256>").verdict,
            Verdict::kOk);
  EXPECT_EQ(run("__global__ void __launch_bounds__(256) k").verdict, Verdict::kOk);
  EXPECT_EQ(
      run("#define B 100\nnamespace n { __global__ void __launch_bounds__(B + 28) k(const float*, float*); "
          "}\n__global__ void __launch_bounds__(1024) k")
          .verdict,
      Verdict::kOk);
  // Threads that wait run on their own stacks, and are counted too.
  EXPECT_EQ(run("__device__ void f() { __syncthreads(); }\n__global__ void __launch_bounds__(128) "
                "k(const float* x, float* out) { if (x[0] == 0) f(); out[0] = 0; }\n__global__ void other")
                .verdict,
            Verdict::kLaunchError);
}

}  // namespace
}  // namespace warpsmith::device

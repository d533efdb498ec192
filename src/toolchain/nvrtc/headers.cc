#include "source.h"

namespace warpsmith::toolchain {

namespace {

// The types are those of CUDA's own headers: a second typedef must name the same.
constexpr const char* kStdint = R"(#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef signed char int_least8_t;
typedef unsigned char uint_least8_t;
typedef short int_least16_t;
typedef unsigned short uint_least16_t;
typedef int int_least32_t;
typedef unsigned int uint_least32_t;
typedef long long int_least64_t;
typedef unsigned long long uint_least64_t;
typedef signed char int_fast8_t;
typedef unsigned char uint_fast8_t;
typedef short int_fast16_t;
typedef unsigned short uint_fast16_t;
typedef int int_fast32_t;
typedef unsigned int uint_fast32_t;
typedef long long int_fast64_t;
typedef unsigned long long uint_fast64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
typedef long long intmax_t;
typedef unsigned long long uintmax_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295U
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT64_MAX 18446744073709551615ULL
#define INTPTR_MIN INT64_MIN
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define SIZE_MAX 18446744073709551615UL
namespace std {
using ::int8_t;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::uint8_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::int_least8_t;
using ::int_least16_t;
using ::int_least32_t;
using ::int_least64_t;
using ::uint_least8_t;
using ::uint_least16_t;
using ::uint_least32_t;
using ::uint_least64_t;
using ::int_fast8_t;
using ::int_fast16_t;
using ::int_fast32_t;
using ::int_fast64_t;
using ::uint_fast8_t;
using ::uint_fast16_t;
using ::uint_fast32_t;
using ::uint_fast64_t;
using ::intptr_t;
using ::uintptr_t;
using ::intmax_t;
using ::uintmax_t;
}  // namespace std
)";

constexpr const char* kLimits = R"(#pragma once
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
)";

constexpr const char* kFloat = R"(#pragma once
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_10_EXP 38
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_TRUE_MIN 1.401298464e-45F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MIN_10_EXP (-307)
#define DBL_MAX_10_EXP 308
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_TRUE_MIN 4.9406564584124654e-324
#define DBL_EPSILON 2.2204460492503131e-16
)";

// The functions are NVRTC's own, with overloads for float; std's are the same.
constexpr const char* kMath = R"(#pragma once
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#endif
#ifndef NAN
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#endif
#ifndef HUGE_VAL
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000LL)
#endif
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
namespace std {
#define WARPSMITH_IN_STD(name) using ::name; using ::name##f;
WARPSMITH_IN_STD(sqrt) WARPSMITH_IN_STD(cbrt) WARPSMITH_IN_STD(hypot) WARPSMITH_IN_STD(exp)
WARPSMITH_IN_STD(exp2) WARPSMITH_IN_STD(expm1) WARPSMITH_IN_STD(log) WARPSMITH_IN_STD(log2)
WARPSMITH_IN_STD(log10) WARPSMITH_IN_STD(log1p) WARPSMITH_IN_STD(pow) WARPSMITH_IN_STD(sin)
WARPSMITH_IN_STD(cos) WARPSMITH_IN_STD(tan) WARPSMITH_IN_STD(asin) WARPSMITH_IN_STD(acos)
WARPSMITH_IN_STD(atan) WARPSMITH_IN_STD(atan2) WARPSMITH_IN_STD(sinh) WARPSMITH_IN_STD(cosh)
WARPSMITH_IN_STD(tanh) WARPSMITH_IN_STD(asinh) WARPSMITH_IN_STD(acosh) WARPSMITH_IN_STD(atanh)
WARPSMITH_IN_STD(erf) WARPSMITH_IN_STD(erfc) WARPSMITH_IN_STD(tgamma) WARPSMITH_IN_STD(lgamma)
WARPSMITH_IN_STD(ceil) WARPSMITH_IN_STD(floor) WARPSMITH_IN_STD(trunc) WARPSMITH_IN_STD(round)
WARPSMITH_IN_STD(rint) WARPSMITH_IN_STD(nearbyint) WARPSMITH_IN_STD(fabs) WARPSMITH_IN_STD(fmod)
WARPSMITH_IN_STD(remainder) WARPSMITH_IN_STD(remquo) WARPSMITH_IN_STD(fma) WARPSMITH_IN_STD(fmax)
WARPSMITH_IN_STD(fmin) WARPSMITH_IN_STD(fdim) WARPSMITH_IN_STD(copysign) WARPSMITH_IN_STD(nextafter)
WARPSMITH_IN_STD(ldexp) WARPSMITH_IN_STD(scalbn) WARPSMITH_IN_STD(scalbln) WARPSMITH_IN_STD(frexp)
WARPSMITH_IN_STD(modf) WARPSMITH_IN_STD(logb) WARPSMITH_IN_STD(ilogb) WARPSMITH_IN_STD(lround)
WARPSMITH_IN_STD(llround) WARPSMITH_IN_STD(lrint) WARPSMITH_IN_STD(llrint) WARPSMITH_IN_STD(nan)
#undef WARPSMITH_IN_STD
using ::abs;
using ::labs;
using ::llabs;
using ::isnan;
using ::isinf;
using ::isfinite;
using ::signbit;
}  // namespace std
)";

constexpr const char* kStddef = R"(#pragma once
typedef decltype(sizeof(0)) size_t;
typedef decltype((char*)0 - (char*)0) ptrdiff_t;
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) ((size_t)&((type*)0)->member)
#endif
typedef decltype(nullptr) nullptr_t;
namespace std {
using ::size_t;
using ::ptrdiff_t;
using ::nullptr_t;
}  // namespace std
)";

constexpr const char* kString = R"(#pragma once
namespace std {
using ::memcpy;
using ::memset;
}  // namespace std
)";

constexpr const char* kStdio = R"(#pragma once
namespace std {
using ::printf;
}  // namespace std
)";

// Of the driver's header, device code has a use for TMA descriptors alone; the rest is host functions.
constexpr const char* kCuda = R"(#pragma once
typedef struct CUtensorMap_st {
  alignas(128) unsigned long long opaque[16];
} CUtensorMap;
)";

// nvcc includes the first of these by itself, so candidates do without; so it does glibc's <sys/types.h>, and
// of CUDA's runtime cuda_device_runtime_api.h, of which NVRTC has nothing: of use are the two functions that
// need no linking. An architecture that lacks their instruction lacks them where they are called.
constexpr const char* kAlways = R"(#pragma once
#include "math.h"
#include "float.h"
#include "limits.h"
#include "stdint.h"
#include "stddef.h"
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned int u_int;
typedef unsigned long u_long;
typedef uint8_t u_int8_t;
typedef uint16_t u_int16_t;
typedef uint32_t u_int32_t;
typedef uint64_t u_int64_t;
typedef long ssize_t;
extern "C" {
static __device__ __forceinline__ void cudaGridDependencySynchronize() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
static __device__ __forceinline__ void cudaTriggerProgrammaticLaunchCompletion() {
  asm volatile("griddepcontrol.launch_dependents;");
}
}
)";

constexpr const char* kNothing = "#pragma once\n";

}  // namespace

const std::map<std::string, std::string>& headers_for_nvrtc() {
  static const std::map<std::string, std::string> headers = {
      {"stdint.h", kStdint},
      {"cstdint", kStdint},
      {"limits.h", kLimits},
      {"climits", kLimits},
      {"float.h", kFloat},
      {"cfloat", kFloat},
      {"math.h", kMath},
      {"cmath", kMath},
      {"stddef.h", kStddef},
      {"cstddef", kStddef},
      {"assert.h", kNothing},
      {"cassert", kNothing},
      {"stdio.h", kStdio},
      {"cstdio", kStdio},
      {"stdlib.h", kNothing},
      {"cstdlib", kNothing},
      {"string.h", kString},
      {"cstring", kString},
      {"stdbool.h", kNothing},
      {"device_functions.h", kNothing},
      {"math_functions.h", kNothing},
      {"cuda_device_runtime_api.h", kNothing},
      {"cuda.h", kCuda},
      {kAlwaysIncluded, kAlways},
  };
  return headers;
}

}  // namespace warpsmith::toolchain

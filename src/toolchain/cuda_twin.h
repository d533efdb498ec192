// CUDA's vocabulary for the CPU twin. Its text stands behind twin_abi.h and in front of every candidate;
// there is no other header. Candidates see no name of ours that does not begin with `wstw_`. Functions on
// floats are written so that g++ can vectorise a loop over threads that calls them: no branches, no errno, no
// table.

#define WSTW_INLINE static inline __attribute__((always_inline, unused))
#define WSTW_MEMBER inline __attribute__((always_inline))

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) alignas(n)
#define __builtin_align__(n) alignas(n)
#define __CUDACC__ 1
#define __CUDA_ARCH__ 800
#define __WARPSMITH_TWIN__ 1

#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define HUGE_VALF (__builtin_inff())
#define CUDART_INF_F (__builtin_inff())
#define CUDART_NAN_F (__builtin_nanf(""))
#define CUDART_PI_F 3.141592654f
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#define CHAR_BIT 8
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (__INT_MAX__ * 2u + 1u)
#define LLONG_MAX __LONG_LONG_MAX__
#define LLONG_MIN (-__LONG_LONG_MAX__ - 1ll)
#define ULLONG_MAX (__LONG_LONG_MAX__ * 2ull + 1ull)
#define INT8_MAX 127
#define INT8_MIN (-128)
#define UINT8_MAX 255
#define INT16_MAX 32767
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT32_MAX UINT_MAX
#define INT64_MAX LLONG_MAX
#define UINT64_MAX ULLONG_MAX
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_E 2.7182818284590452354
#define M_LN2 0.69314718055994530942
#define M_LOG2E 1.4426950408889634074
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_2_SQRTPI 1.12837916709551257390

// ---- vector types
// -------------------------------------------------------------------------------------------------------
// Aligned as on a GPU. A pointer cast to one of them goes through wstw_align (the rewriter sees to it).
#define WSTW_VECTORS(T, N, A2, A4)                                            \
  struct N##1 {                                                               \
    T x;                                                                      \
  };                                                                          \
  struct alignas(A2) N##2 {                                                   \
    T x, y;                                                                   \
  };                                                                          \
  struct N##3 {                                                               \
    T x, y, z;                                                                \
  };                                                                          \
  struct alignas(A4) N##4 {                                                   \
    T x, y, z, w;                                                             \
  };                                                                          \
  WSTW_INLINE constexpr N##1 make_##N##1(T x) { return {x}; }                 \
  WSTW_INLINE constexpr N##2 make_##N##2(T x, T y) { return {x, y}; }         \
  WSTW_INLINE constexpr N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; } \
  WSTW_INLINE constexpr N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
WSTW_VECTORS(float, float, 8, 16)
WSTW_VECTORS(double, double, 16, 16)
WSTW_VECTORS(int, int, 8, 16)
WSTW_VECTORS(unsigned, uint, 8, 16)
WSTW_VECTORS(short, short, 4, 8)
WSTW_VECTORS(unsigned short, ushort, 4, 8)
WSTW_VECTORS(signed char, char, 2, 4)
WSTW_VECTORS(unsigned char, uchar, 2, 4)
WSTW_VECTORS(long long, longlong, 16, 16)
WSTW_VECTORS(unsigned long long, ulonglong, 16, 16)
#undef WSTW_VECTORS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// A pointer about to become a pointer to a type of greater alignment. Where it is not aligned, the result
// traps when it is followed (its top bit makes the address no address), but still tests as misaligned and
// compares as before.
template <class T>
struct wstw_align {
  uintptr_t address;
  template <class U>
  WSTW_MEMBER wstw_align(U* p) : address((uintptr_t)p) {}
  WSTW_MEMBER wstw_align(uintptr_t p) : address(p) {}
  template <class U>
  WSTW_MEMBER operator U*() const {
    return (U*)(address | ((address & (alignof(T) - 1)) ? (uintptr_t)1 << 63 : 0));
  }
};

template <class T>
struct wstw_no_cv {
  typedef T type;
};
template <class T>
struct wstw_no_cv<const T> {
  typedef T type;
};
template <class T>
struct wstw_no_cv<volatile T> {
  typedef T type;
};
template <class T>
struct wstw_no_cv<const volatile T> {
  typedef T type;
};
template <class T, class U>
struct wstw_same {
  static constexpr bool value = false;
};
template <class T>
struct wstw_same<T, T> {
  static constexpr bool value = true;
};

template <class To>
struct wstw_caster {
  template <class From>
  WSTW_MEMBER static To cast(From p) {
    return reinterpret_cast<To>(p);
  }
};
template <class T>
struct wstw_caster<T*> {
  template <class From>
  WSTW_MEMBER static T* cast(From p) {
    if constexpr (wstw_same<typename wstw_no_cv<T>::type, void>::value || alignof(T) < 8)
      return reinterpret_cast<T*>(p);
    else
      return (T*)wstw_align<T>(p);
  }
};
template <>
struct wstw_caster<void*> {
  template <class From>
  WSTW_MEMBER static void* cast(From p) {
    return (void*)p;
  }
};
template <>
struct wstw_caster<const void*> {
  template <class From>
  WSTW_MEMBER static const void* cast(From p) {
    return (const void*)p;
  }
};
template <class T>
struct wstw_caster<T&> {
  template <class From>
  WSTW_MEMBER static T& cast(From& v) {
    return *wstw_caster<T*>::cast(&v);
  }
};
// reinterpret_cast, looking at the alignment.
template <class To, class From>
WSTW_INLINE To wstw_reinterpret(From&& v) {
  return wstw_caster<To>::cast(v);
}

// ---- who am I
// -----------------------------------------------------------------------------------------------------------
WSTW_INLINE constexpr uint3 wstw_u3(const wstw_uint3& v) { return {v.x, v.y, v.z}; }
#define threadIdx (wstw_u3(wstw_.thread_idx))
#define blockIdx (wstw_u3(wstw_.block_idx))
#define blockDim (dim3(wstw_u3(wstw_.block_dim)))
#define gridDim (dim3(wstw_u3(wstw_.grid_dim)))
#define warpSize 32
WSTW_INLINE unsigned wstw_lane(const wstw_ctx& c) { return c.rank & 31u; }

template <class T, class Tag>
struct wstw_slot {
  static inline unsigned place = 0;
};
// The storage of one static __shared__ variable in the block of `c`. Tag tells variables of equal type apart.
template <class T, class Tag>
WSTW_INLINE T& wstw_shared(const wstw_ctx& c) {
  static_assert(sizeof(T) <= 48 * 1024, "a __shared__ variable is over 48 KB");
  unsigned place = __atomic_load_n(&wstw_slot<T, Tag>::place, __ATOMIC_RELAXED);
  if (__builtin_expect(place == 0, 0)) {
    c.block->runtime->place_shared(&wstw_slot<T, Tag>::place, sizeof(T), alignof(T) > 16 ? alignof(T) : 16);
    place = __atomic_load_n(&wstw_slot<T, Tag>::place, __ATOMIC_RELAXED);
  }
  return *(T*)(c.block->shared + (place - 1));
}

// ---- barriers, warps
// ----------------------------------------------------------------------------------------------------
WSTW_INLINE void wstw_fence() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
WSTW_INLINE int wstw_barrier(const wstw_ctx& c, int kind, int predicate) {
  return c.block->runtime->barrier(&c, kind, predicate);
}
#define __syncthreads() ((void)wstw_barrier(wstw_, kWstwSync, 0))
#define __syncthreads_count(p) wstw_barrier(wstw_, kWstwCount, (p) ? 1 : 0)
#define __syncthreads_and(p) wstw_barrier(wstw_, kWstwAnd, (p) ? 1 : 0)
#define __syncthreads_or(p) wstw_barrier(wstw_, kWstwOr, (p) ? 1 : 0)
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_block() wstw_fence()
#define __threadfence_system() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __nanosleep(n) ((void)(n))

WSTW_INLINE unsigned long long wstw_warp(const wstw_ctx& c, int op, unsigned mask, unsigned long long value,
                                         unsigned long long argument) {
  return c.block->runtime->warp(&c, op, mask, value, argument);
}
template <class T>
WSTW_INLINE unsigned long long wstw_bits(T v) {
  static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &v, sizeof v);
  return bits;
}
template <class T>
WSTW_INLINE T wstw_value(unsigned long long bits) {
  T v;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}
// Lanes of sections of `width`; where the source lies outside the own section, the own value.
WSTW_INLINE unsigned wstw_source_idx(unsigned lane, int source, int width) {
  return (lane & ~(unsigned)(width - 1)) | ((unsigned)source & (unsigned)(width - 1));
}
WSTW_INLINE unsigned wstw_source_up(unsigned lane, unsigned delta, int width) {
  return (lane & (unsigned)(width - 1)) >= delta ? lane - delta : lane;
}
WSTW_INLINE unsigned wstw_source_down(unsigned lane, unsigned delta, int width) {
  return (lane & (unsigned)(width - 1)) + delta < (unsigned)width ? lane + delta : lane;
}
WSTW_INLINE unsigned wstw_source_xor(unsigned lane, int bits, int width) {
  const unsigned source = lane ^ (unsigned)bits;
  // A lane may read sections before its own, not those behind it.
  return source < (lane & ~(unsigned)(width - 1)) + (unsigned)width ? source : lane;
}
template <class T>
WSTW_INLINE T wstw_shuffle(const wstw_ctx& c, unsigned mask, T v, unsigned source) {
  return wstw_value<T>(wstw_warp(c, kWstwGather, mask, wstw_bits(v), source));
}
template <class T>
WSTW_INLINE T wstw_shfl(const wstw_ctx& c, unsigned mask, T v, int source, int width = 32) {
  return wstw_shuffle(c, mask, v, wstw_source_idx(wstw_lane(c), source, width));
}
template <class T>
WSTW_INLINE T wstw_shfl_up(const wstw_ctx& c, unsigned mask, T v, unsigned delta, int width = 32) {
  return wstw_shuffle(c, mask, v, wstw_source_up(wstw_lane(c), delta, width));
}
template <class T>
WSTW_INLINE T wstw_shfl_down(const wstw_ctx& c, unsigned mask, T v, unsigned delta, int width = 32) {
  return wstw_shuffle(c, mask, v, wstw_source_down(wstw_lane(c), delta, width));
}
template <class T>
WSTW_INLINE T wstw_shfl_xor(const wstw_ctx& c, unsigned mask, T v, int bits, int width = 32) {
  return wstw_shuffle(c, mask, v, wstw_source_xor(wstw_lane(c), bits, width));
}
#define __shfl_sync(...) wstw_shfl(wstw_, __VA_ARGS__)
#define __shfl_up_sync(...) wstw_shfl_up(wstw_, __VA_ARGS__)
#define __shfl_down_sync(...) wstw_shfl_down(wstw_, __VA_ARGS__)
#define __shfl_xor_sync(...) wstw_shfl_xor(wstw_, __VA_ARGS__)
#define __ballot_sync(m, p) ((unsigned)wstw_warp(wstw_, kWstwBallot, (m), (p) ? 1 : 0, 0))
#define __any_sync(m, p) ((int)wstw_warp(wstw_, kWstwAny, (m), (p) ? 1 : 0, 0))
#define __all_sync(m, p) ((int)wstw_warp(wstw_, kWstwAll, (m), (p) ? 1 : 0, 0))
#define __activemask() ((unsigned)wstw_warp(wstw_, kWstwActiveMask, ~0u, 0, __COUNTER__ + 1))
WSTW_INLINE void wstw_syncwarp(const wstw_ctx& c, unsigned mask = ~0u) {
  wstw_warp(c, kWstwWarpSync, mask, 0, 0);
}
#define __syncwarp(...) wstw_syncwarp(wstw_ __VA_OPT__(, ) __VA_ARGS__)
template <class T>
WSTW_INLINE unsigned wstw_match_any(const wstw_ctx& c, unsigned mask, T v) {
  return (unsigned)wstw_warp(c, kWstwMatchAny, mask, wstw_bits(v), 0);
}
#define __match_any_sync(m, v) wstw_match_any(wstw_, (m), (v))
WSTW_INLINE unsigned wstw_reduce(const wstw_ctx& c, unsigned mask, unsigned v, int u, int) {
  return (unsigned)wstw_warp(c, u, mask, v, 0);
}
WSTW_INLINE int wstw_reduce(const wstw_ctx& c, unsigned mask, int v, int, int s) {
  return (int)wstw_warp(c, s, mask, (unsigned)v, 0);
}
#define __reduce_add_sync(m, v) wstw_reduce(wstw_, (m), (v), kWstwSum, kWstwSum)
#define __reduce_min_sync(m, v) wstw_reduce(wstw_, (m), (v), kWstwMinU, kWstwMinS)
#define __reduce_max_sync(m, v) wstw_reduce(wstw_, (m), (v), kWstwMaxU, kWstwMaxS)
#define __reduce_and_sync(m, v) wstw_reduce(wstw_, (m), (unsigned)(v), kWstwBitAnd, 0)
#define __reduce_or_sync(m, v) wstw_reduce(wstw_, (m), (unsigned)(v), kWstwBitOr, 0)
#define __reduce_xor_sync(m, v) wstw_reduce(wstw_, (m), (unsigned)(v), kWstwBitXor, 0)

#define __trap() __builtin_trap()
#define __brkpt() ((void)0)
#define assert(e) ((e) ? (void)0 : __builtin_trap())
#define printf(...) (0)
#define __builtin_assume(e) ((e) ? (void)0 : __builtin_unreachable())
#define __assume(e) ((e) ? (void)0 : __builtin_unreachable())

// ---- integers
// -----------------------------------------------------------------------------------------------------------
WSTW_INLINE int __popc(unsigned v) { return __builtin_popcount(v); }
WSTW_INLINE int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
WSTW_INLINE int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
WSTW_INLINE int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
WSTW_INLINE int __ffs(int v) { return __builtin_ffs(v); }
WSTW_INLINE int __ffsll(long long v) { return __builtin_ffsll(v); }
WSTW_INLINE unsigned __brev(unsigned v) {
  v = ((v >> 1) & 0x55555555u) | ((v & 0x55555555u) << 1);
  v = ((v >> 2) & 0x33333333u) | ((v & 0x33333333u) << 2);
  v = ((v >> 4) & 0x0F0F0F0Fu) | ((v & 0x0F0F0F0Fu) << 4);
  return __builtin_bswap32(v);
}
WSTW_INLINE unsigned long long __brevll(unsigned long long v) {
  return ((unsigned long long)__brev((unsigned)v) << 32) | __brev((unsigned)(v >> 32));
}
WSTW_INLINE unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  const unsigned long long both = ((unsigned long long)b << 32) | a;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = (s >> (4 * i)) & 15u;
    unsigned byte = (unsigned)(both >> (8 * (pick & 7u))) & 255u;
    if (pick & 8u) byte = (byte & 128u) ? 255u : 0u;
    out |= byte << (8 * i);
  }
  return out;
}
WSTW_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((((unsigned long long)hi << 32) | lo) << (s & 31u)) >> 32);
}
WSTW_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)((((unsigned long long)hi << 32) | lo) >> (s & 31u));
}
WSTW_INLINE int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
WSTW_INLINE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xFFFFFFu) * (b & 0xFFFFFFu); }
WSTW_INLINE int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
WSTW_INLINE unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a * b) >> 32);
}
WSTW_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
WSTW_INLINE int __sad(int a, int b, unsigned c) { return (int)((unsigned)(a > b ? a - b : b - a) + c); }
WSTW_INLINE int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += (int)(signed char)(a >> (8 * i)) * (int)(signed char)(b >> (8 * i));
  return c;
}
WSTW_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += ((a >> (8 * i)) & 255u) * ((b >> (8 * i)) & 255u);
  return c;
}
template <class A, class B>
WSTW_INLINE constexpr auto min(A a, B b) {
  typedef decltype(true ? a : b) T;
  return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B>
WSTW_INLINE constexpr auto max(A a, B b) {
  typedef decltype(true ? a : b) T;
  return (T)a < (T)b ? (T)b : (T)a;
}
WSTW_INLINE constexpr int abs(int v) { return v < 0 ? -v : v; }
WSTW_INLINE constexpr long abs(long v) { return v < 0 ? -v : v; }
WSTW_INLINE constexpr long long abs(long long v) { return v < 0 ? -v : v; }
WSTW_INLINE float abs(float v) { return __builtin_fabsf(v); }
WSTW_INLINE double abs(double v) { return __builtin_fabs(v); }
WSTW_INLINE long long llabs(long long v) { return v < 0 ? -v : v; }
WSTW_INLINE unsigned umin(unsigned a, unsigned b) { return b < a ? b : a; }
WSTW_INLINE unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }

// ---- floats
// -------------------------------------------------------------------------------------------------------------
WSTW_INLINE int __float_as_int(float v) { return __builtin_bit_cast(int, v); }
WSTW_INLINE unsigned __float_as_uint(float v) { return __builtin_bit_cast(unsigned, v); }
WSTW_INLINE float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
WSTW_INLINE float __uint_as_float(unsigned v) { return __builtin_bit_cast(float, v); }
WSTW_INLINE long long __double_as_longlong(double v) { return __builtin_bit_cast(long long, v); }
WSTW_INLINE double __longlong_as_double(long long v) { return __builtin_bit_cast(double, v); }

WSTW_INLINE float fabsf(float v) { return __builtin_fabsf(v); }
WSTW_INLINE float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
WSTW_INLINE float sqrtf(float v) { return __builtin_sqrtf(v); }
WSTW_INLINE float floorf(float v) { return __builtin_floorf(v); }
WSTW_INLINE float ceilf(float v) { return __builtin_ceilf(v); }
WSTW_INLINE float truncf(float v) { return __builtin_truncf(v); }
WSTW_INLINE float rintf(float v) { return __builtin_rintf(v); }
WSTW_INLINE float nearbyintf(float v) { return __builtin_rintf(v); }
WSTW_INLINE float copysignf(float a, float b) { return __builtin_copysignf(a, b); }
WSTW_INLINE float roundf(float v) {
  const float t = __builtin_truncf(v);
  return __builtin_copysignf(__builtin_fabsf(v - t) >= 0.5f ? t + __builtin_copysignf(1.f, v) : t, v);
}
WSTW_INLINE int isnan(float v) { return v != v; }
WSTW_INLINE int isnan(double v) { return v != v; }
WSTW_INLINE int isinf(float v) { return __builtin_fabsf(v) == __builtin_inff(); }
WSTW_INLINE int isinf(double v) { return __builtin_fabs(v) == __builtin_inf(); }
WSTW_INLINE int isfinite(float v) { return __builtin_fabsf(v) < __builtin_inff(); }
WSTW_INLINE int isfinite(double v) { return __builtin_fabs(v) < __builtin_inf(); }
WSTW_INLINE int signbit(float v) { return __float_as_int(v) < 0; }
WSTW_INLINE int signbit(double v) { return __double_as_longlong(v) < 0; }
// The other argument where one is NaN.
WSTW_INLINE float fmaxf(float a, float b) { return (a > b || b != b) ? a : b; }
WSTW_INLINE float fminf(float a, float b) { return (a < b || b != b) ? a : b; }
WSTW_INLINE double fmax(double a, double b) { return (a > b || b != b) ? a : b; }
WSTW_INLINE double fmin(double a, double b) { return (a < b || b != b) ? a : b; }
WSTW_INLINE float min(float a, float b) { return fminf(a, b); }
WSTW_INLINE float max(float a, float b) { return fmaxf(a, b); }
WSTW_INLINE double min(double a, double b) { return fmin(a, b); }
WSTW_INLINE double max(double a, double b) { return fmax(a, b); }
WSTW_INLINE float fdimf(float a, float b) { return a > b ? a - b : (a != a || b != b ? NAN : 0.f); }
WSTW_INLINE float __saturatef(float v) { return fminf(fmaxf(v, 0.f), 1.f); }
WSTW_INLINE float fdividef(float a, float b) { return a / b; }
WSTW_INLINE float __fdividef(float a, float b) { return a / b; }
WSTW_INLINE float __fdiv_rn(float a, float b) { return a / b; }
WSTW_INLINE float __frcp_rn(float v) { return 1.f / v; }
WSTW_INLINE float __fsqrt_rn(float v) { return __builtin_sqrtf(v); }
WSTW_INLINE float rsqrtf(float v) { return 1.f / __builtin_sqrtf(v); }
WSTW_INLINE float __frsqrt_rn(float v) { return 1.f / __builtin_sqrtf(v); }
WSTW_INLINE float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
WSTW_INLINE float wstw_opaque(float v) {
  __asm__("" : "+x"(v));  // keeps the compiler from contracting across it
  return v;
}
WSTW_INLINE float __fmul_rn(float a, float b) { return wstw_opaque(a * b); }
WSTW_INLINE float __fadd_rn(float a, float b) { return wstw_opaque(wstw_opaque(a) + wstw_opaque(b)); }
WSTW_INLINE float __fsub_rn(float a, float b) { return wstw_opaque(wstw_opaque(a) - wstw_opaque(b)); }

WSTW_INLINE float wstw_pow2i(int n) { return __int_as_float((n + 127) << 23); }  // n in [-126, 127]
WSTW_INLINE float expf(float x) {
  // Cephes, with the scale in two steps so that subnormal results and infinity come out.
  const float c = x < -104.f ? -104.f : (x > 89.f ? 89.f : x);
  const float n = __builtin_rintf(c * 1.44269504088896341f);
  float r = __builtin_fmaf(n, -0.693359375f, c);
  r = __builtin_fmaf(n, 2.12194440e-4f, r);
  float p = 1.9875691500E-4f;
  p = __builtin_fmaf(p, r, 1.3981999507E-3f);
  p = __builtin_fmaf(p, r, 8.3334519073E-3f);
  p = __builtin_fmaf(p, r, 4.1665795894E-2f);
  p = __builtin_fmaf(p, r, 1.6666665459E-1f);
  p = __builtin_fmaf(p, r, 5.0000001201E-1f);
  p = __builtin_fmaf(p * r, r, r + 1.f);
  const int whole = (int)n, half_of_it = whole >> 1;
  return p * wstw_pow2i(half_of_it) * wstw_pow2i(whole - half_of_it);
}
WSTW_INLINE float __expf(float x) { return expf(x); }
WSTW_INLINE float exp2f(float x) {
  const float c = x < -151.f ? -151.f : (x > 129.f ? 129.f : x);
  const float n = __builtin_rintf(c);
  const float r = (c - n) * 0.693147180559945f;
  float p = 1.9875691500E-4f;
  p = __builtin_fmaf(p, r, 1.3981999507E-3f);
  p = __builtin_fmaf(p, r, 8.3334519073E-3f);
  p = __builtin_fmaf(p, r, 4.1665795894E-2f);
  p = __builtin_fmaf(p, r, 1.6666665459E-1f);
  p = __builtin_fmaf(p, r, 5.0000001201E-1f);
  p = __builtin_fmaf(p * r, r, r + 1.f);
  const int whole = (int)n, half_of_it = whole >> 1;
  return p * wstw_pow2i(half_of_it) * wstw_pow2i(whole - half_of_it);
}
WSTW_INLINE float wstw_log_parts(float x,
                                 float* exponent) {  // x = 2^e * m, m in [sqrt(1/2), sqrt(2)); returns log(m)
  const bool tiny = x < 1.17549435e-38f;
  const float y = tiny ? x * 8388608.f : x;
  const int bits = __float_as_int(y);
  const int e = ((bits - 0x3f3504f3) >> 23);
  const float m = __int_as_float(bits - (e << 23)) - 1.f;
  *exponent = (float)e - (tiny ? 23.f : 0.f);
  const float z = m * m;
  float p = 7.0376836292E-2f;
  p = __builtin_fmaf(p, m, -1.1514610310E-1f);
  p = __builtin_fmaf(p, m, 1.1676998740E-1f);
  p = __builtin_fmaf(p, m, -1.2420140846E-1f);
  p = __builtin_fmaf(p, m, 1.4249322787E-1f);
  p = __builtin_fmaf(p, m, -1.6668057665E-1f);
  p = __builtin_fmaf(p, m, 2.0000714765E-1f);
  p = __builtin_fmaf(p, m, -2.4999993993E-1f);
  p = __builtin_fmaf(p, m, 3.3333331174E-1f);
  return __builtin_fmaf(p * m, z, __builtin_fmaf(-0.5f, z, m));
}
WSTW_INLINE float wstw_log_edges(float x, float y) {
  y = x == 0.f ? -__builtin_inff() : y;
  y = x < 0.f ? NAN : y;
  return !(x < __builtin_inff()) ? x : y;  // infinity and NaN
}
WSTW_INLINE float logf(float x) {
  float e;
  const float l = wstw_log_parts(x, &e);
  return wstw_log_edges(x, __builtin_fmaf(e, 0.693359375f, __builtin_fmaf(e, -2.12194440e-4f, l)));
}
WSTW_INLINE float __logf(float x) { return logf(x); }
WSTW_INLINE float log2f(float x) {
  float e;
  const float l = wstw_log_parts(x, &e);
  return wstw_log_edges(x, __builtin_fmaf(l, 1.44269504f, __builtin_fmaf(l, 1.92596299e-8f, e)));
}
WSTW_INLINE float __log2f(float x) { return log2f(x); }
WSTW_INLINE float log10f(float x) { return __builtin_log10f(x); }
WSTW_INLINE float __log10f(float x) { return __builtin_log10f(x); }
WSTW_INLINE float log1pf(float x) {
  // log(u) corrected for what 1 + x lost.
  const float u = 1.f + x;
  const float lost = x - (u - 1.f);
  const float y = logf(u) + (u < __builtin_inff() ? lost / u : 0.f);
  return x == 0.f || u == 0.f ? (u == 0.f ? -__builtin_inff() : x) : y;
}
WSTW_INLINE float expm1f(float x) { return __builtin_expm1f(x); }
WSTW_INLINE float exp10f(float x) { return (float)__builtin_exp2((double)x * 3.3219280948873623478703); }
WSTW_INLINE float __exp10f(float x) { return exp10f(x); }
WSTW_INLINE float tanhf(float x) {
  const float a = __builtin_fabsf(x);
  const float z = x * x;
  float p = -5.70498872745E-3f;
  p = __builtin_fmaf(p, z, 2.06390887954E-2f);
  p = __builtin_fmaf(p, z, -5.37397155531E-2f);
  p = __builtin_fmaf(p, z, 1.33314422036E-1f);
  p = __builtin_fmaf(p, z, -3.33332819422E-1f);
  const float small = __builtin_fmaf(p * z, x, x);
  const float large = __builtin_copysignf(1.f - 2.f / (expf(a + a) + 1.f), x);
  return a < 0.625f ? small : (a != a ? x : large);
}
WSTW_INLINE float __tanhf(float x) { return tanhf(x); }
WSTW_INLINE float erff(float a) {
  const float t = __builtin_fabsf(a), s = a * a;
  float r = __builtin_fmaf(-1.72853470e-5f, t, 3.83197126e-4f);
  const float u = __builtin_fmaf(-3.88396438e-3f, t, 2.42546219e-2f);
  r = __builtin_fmaf(r, s, u);
  r = __builtin_fmaf(r, t, -1.06777877e-1f);
  r = __builtin_fmaf(r, t, -6.34846687e-1f);
  r = __builtin_fmaf(r, t, -1.28717512e-1f);
  r = __builtin_fmaf(r, t, -t);
  const float large = __builtin_copysignf(1.f - expf(r), a);
  float q = -5.96761703e-4f;
  q = __builtin_fmaf(q, s, 4.99119423e-3f);
  q = __builtin_fmaf(q, s, -2.67681349e-2f);
  q = __builtin_fmaf(q, s, 1.12819925e-1f);
  q = __builtin_fmaf(q, s, -3.76125336e-1f);
  q = __builtin_fmaf(q, s, 1.28379166e-1f);
  const float small = __builtin_fmaf(q, a, a);
  return t > 0.927734375f ? (t > 9.f ? __builtin_copysignf(1.f, a) : large) : small;
}
WSTW_INLINE float erfcf(float x) { return __builtin_erfcf(x); }
WSTW_INLINE float normcdff(float x) { return 0.5f * __builtin_erfcf(-0.70710678f * x); }
// Reduction by pi/2 in double: exact enough up to 2^50.
WSTW_INLINE float wstw_sin_shifted(float x, double quarter_turns) {
  const double n = __builtin_rint((double)x * 0.63661977236758134308);
  const double r =
      __builtin_fma(-n, 6.12323399573676603587e-17, __builtin_fma(-n, 1.57079632679489661923, (double)x));
  const double q = n + quarter_turns;
  const double part = q - 4.0 * __builtin_floor(q * 0.25);  // 0, 1, 2 or 3
  const double z = r * r;
  const double s =
      r + r * z * (-1.66666666666e-1 + z * (8.33333332e-3 + z * (-1.98412558e-4 + z * 2.7522e-6)));
  const double c =
      1.0 - 0.5 * z + z * z * (4.16666666e-2 + z * (-1.38888882e-3 + z * (2.4800859e-5 - z * 2.7238e-7)));
  const double v = (part == 1.0 || part == 3.0) ? c : s;
  return (float)(part >= 2.0 ? -v : v);
}
WSTW_INLINE float sinf(float x) { return wstw_sin_shifted(x, 0.0); }
WSTW_INLINE float cosf(float x) { return wstw_sin_shifted(x, 1.0); }
WSTW_INLINE float __sinf(float x) { return sinf(x); }
WSTW_INLINE float __cosf(float x) { return cosf(x); }
WSTW_INLINE void sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}
WSTW_INLINE void __sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}
WSTW_INLINE float powf(float x, float y) { return __builtin_powf(x, y); }
WSTW_INLINE float __powf(float x, float y) { return __builtin_powf(x, y); }
#define WSTW_LIBM1(name) \
  WSTW_INLINE float name##f(float x) { return __builtin_##name##f(x); }
WSTW_LIBM1(tan)
WSTW_LIBM1(asin) WSTW_LIBM1(acos) WSTW_LIBM1(atan) WSTW_LIBM1(sinh) WSTW_LIBM1(cosh) WSTW_LIBM1(asinh)
    WSTW_LIBM1(acosh) WSTW_LIBM1(atanh) WSTW_LIBM1(cbrt) WSTW_LIBM1(lgamma) WSTW_LIBM1(tgamma)
#undef WSTW_LIBM1
        WSTW_INLINE float __tanf(float x) {
  return __builtin_tanf(x);
}
WSTW_INLINE float atan2f(float y, float x) { return __builtin_atan2f(y, x); }
WSTW_INLINE float fmodf(float a, float b) { return __builtin_fmodf(a, b); }
WSTW_INLINE float remainderf(float a, float b) { return __builtin_remainderf(a, b); }
WSTW_INLINE float hypotf(float a, float b) { return (float)__builtin_sqrt((double)a * a + (double)b * b); }
WSTW_INLINE float rhypotf(float a, float b) { return 1.f / hypotf(a, b); }
WSTW_INLINE float rcbrtf(float x) { return 1.f / __builtin_cbrtf(x); }
WSTW_INLINE float ldexpf(float x, int e) { return __builtin_ldexpf(x, e); }
WSTW_INLINE float frexpf(float x, int* e) { return __builtin_frexpf(x, e); }
WSTW_INLINE int lrintf_int(float v) { return (int)__builtin_rintf(v); }
WSTW_INLINE long lrintf(float v) { return (long)__builtin_rintf(v); }
WSTW_INLINE long lroundf(float v) { return (long)roundf(v); }

#define WSTW_LIBM1(name) \
  WSTW_INLINE double name(double x) { return __builtin_##name(x); }
WSTW_LIBM1(exp)
WSTW_LIBM1(exp2) WSTW_LIBM1(log) WSTW_LIBM1(log2) WSTW_LIBM1(log10) WSTW_LIBM1(log1p) WSTW_LIBM1(expm1)
    WSTW_LIBM1(sqrt) WSTW_LIBM1(sin) WSTW_LIBM1(cos) WSTW_LIBM1(tan) WSTW_LIBM1(asin) WSTW_LIBM1(acos)
        WSTW_LIBM1(atan) WSTW_LIBM1(sinh) WSTW_LIBM1(cosh) WSTW_LIBM1(tanh) WSTW_LIBM1(erf) WSTW_LIBM1(erfc)
            WSTW_LIBM1(floor) WSTW_LIBM1(ceil) WSTW_LIBM1(trunc) WSTW_LIBM1(rint) WSTW_LIBM1(round)
                WSTW_LIBM1(cbrt) WSTW_LIBM1(fabs)
#undef WSTW_LIBM1
// CUDA's overloads of the plain names for float.
#define WSTW_FLOAT1(name) \
  WSTW_INLINE float name(float x) { return name##f(x); }
                    WSTW_FLOAT1(exp) WSTW_FLOAT1(exp2) WSTW_FLOAT1(log) WSTW_FLOAT1(log2) WSTW_FLOAT1(log10)
                        WSTW_FLOAT1(log1p) WSTW_FLOAT1(expm1) WSTW_FLOAT1(sqrt) WSTW_FLOAT1(sin)
                            WSTW_FLOAT1(cos) WSTW_FLOAT1(tan) WSTW_FLOAT1(asin) WSTW_FLOAT1(acos)
                                WSTW_FLOAT1(atan) WSTW_FLOAT1(sinh) WSTW_FLOAT1(cosh) WSTW_FLOAT1(tanh)
                                    WSTW_FLOAT1(erf) WSTW_FLOAT1(erfc) WSTW_FLOAT1(floor) WSTW_FLOAT1(ceil)
                                        WSTW_FLOAT1(trunc) WSTW_FLOAT1(rint) WSTW_FLOAT1(round)
                                            WSTW_FLOAT1(cbrt) WSTW_FLOAT1(fabs)
#undef WSTW_FLOAT1
                                                WSTW_INLINE double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
WSTW_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
WSTW_INLINE float fmax(float a, float b) { return fmaxf(a, b); }
WSTW_INLINE float fmin(float a, float b) { return fminf(a, b); }
WSTW_INLINE double pow(double a, double b) { return __builtin_pow(a, b); }
WSTW_INLINE float pow(float a, float b) { return __builtin_powf(a, b); }
WSTW_INLINE float pow(float a, int b) { return __builtin_powf(a, (float)b); }
WSTW_INLINE double pow(double a, int b) { return __builtin_pow(a, (double)b); }
WSTW_INLINE double fmod(double a, double b) { return __builtin_fmod(a, b); }
WSTW_INLINE float fmod(float a, float b) { return __builtin_fmodf(a, b); }
WSTW_INLINE double atan2(double a, double b) { return __builtin_atan2(a, b); }
WSTW_INLINE float atan2(float a, float b) { return __builtin_atan2f(a, b); }
WSTW_INLINE double copysign(double a, double b) { return __builtin_copysign(a, b); }
WSTW_INLINE double hypot(double a, double b) { return __builtin_hypot(a, b); }
WSTW_INLINE double rsqrt(double v) { return 1.0 / __builtin_sqrt(v); }
WSTW_INLINE float rsqrt(float v) { return rsqrtf(v); }

WSTW_INLINE int __float2int_rn(float v) { return (int)__builtin_rintf(v); }
WSTW_INLINE int __float2int_rz(float v) { return (int)v; }
WSTW_INLINE int __float2int_rd(float v) { return (int)__builtin_floorf(v); }
WSTW_INLINE int __float2int_ru(float v) { return (int)__builtin_ceilf(v); }
WSTW_INLINE unsigned __float2uint_rn(float v) { return (unsigned)__builtin_rintf(v); }
WSTW_INLINE unsigned __float2uint_rz(float v) { return (unsigned)v; }
WSTW_INLINE float __int2float_rn(int v) { return (float)v; }
WSTW_INLINE float __uint2float_rn(unsigned v) { return (float)v; }
WSTW_INLINE float __double2float_rn(double v) { return (float)v; }

template <class T>
WSTW_INLINE T __ldg(const T* p) {
  return *p;
}
template <class T>
WSTW_INLINE T __ldcs(const T* p) {
  return *p;
}
template <class T>
WSTW_INLINE T __ldca(const T* p) {
  return *p;
}
template <class T>
WSTW_INLINE T __ldcg(const T* p) {
  return *p;
}
template <class T>
WSTW_INLINE void __stcs(T* p, T v) {
  *p = v;
}
template <class T>
WSTW_INLINE void __stcg(T* p, T v) {
  *p = v;
}
template <class T>
WSTW_INLINE void __stwt(T* p, T v) {
  *p = v;
}

// ---- half, bfloat16: stored in 16 bits, arithmetic in float
// -------------------------------------------------------------
struct __half {
  _Float16 v;
  __half() = default;
  WSTW_MEMBER __half(float x) : v((_Float16)x) {}
  WSTW_MEMBER __half(double x) : v((_Float16)x) {}
  WSTW_MEMBER __half(int x) : v((_Float16)(float)x) {}
  WSTW_MEMBER __half(unsigned x) : v((_Float16)(float)x) {}
  WSTW_MEMBER operator float() const { return (float)v; }
};
struct __nv_bfloat16 {
  unsigned short v;
  __nv_bfloat16() = default;
  WSTW_MEMBER __nv_bfloat16(float x) {
    const unsigned bits = __float_as_uint(x);
    v = (bits & 0x7fffffffu) > 0x7f800000u ? (unsigned short)((bits >> 16) | 64u)
                                           : (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
  WSTW_MEMBER __nv_bfloat16(double x) : __nv_bfloat16((float)x) {}
  WSTW_MEMBER __nv_bfloat16(int x) : __nv_bfloat16((float)x) {}
  WSTW_MEMBER operator float() const { return __uint_as_float((unsigned)v << 16); }
};
typedef __half half;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat16 bfloat16;
struct alignas(4) __half2 {
  __half x, y;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;

#define WSTW_HALF_OPS(T, T2)                                                                          \
  WSTW_INLINE T operator+(T a, T b) { return T((float)a + (float)b); }                                \
  WSTW_INLINE T operator-(T a, T b) { return T((float)a - (float)b); }                                \
  WSTW_INLINE T operator*(T a, T b) { return T((float)a * (float)b); }                                \
  WSTW_INLINE T operator/(T a, T b) { return T((float)a / (float)b); }                                \
  WSTW_INLINE T operator-(T a) { return T(-(float)a); }                                               \
  WSTW_INLINE T& operator+=(T& a, T b) { return a = a + b; }                                          \
  WSTW_INLINE T& operator-=(T& a, T b) { return a = a - b; }                                          \
  WSTW_INLINE T& operator*=(T& a, T b) { return a = a * b; }                                          \
  WSTW_INLINE T& operator/=(T& a, T b) { return a = a / b; }                                          \
  WSTW_INLINE bool operator<(T a, T b) { return (float)a < (float)b; }                                \
  WSTW_INLINE bool operator>(T a, T b) { return (float)a > (float)b; }                                \
  WSTW_INLINE bool operator<=(T a, T b) { return (float)a <= (float)b; }                              \
  WSTW_INLINE bool operator>=(T a, T b) { return (float)a >= (float)b; }                              \
  WSTW_INLINE bool operator==(T a, T b) { return (float)a == (float)b; }                              \
  WSTW_INLINE bool operator!=(T a, T b) { return (float)a != (float)b; }                              \
  WSTW_INLINE T __hadd(T a, T b) { return a + b; }                                                    \
  WSTW_INLINE T __hsub(T a, T b) { return a - b; }                                                    \
  WSTW_INLINE T __hmul(T a, T b) { return a * b; }                                                    \
  WSTW_INLINE T __hdiv(T a, T b) { return a / b; }                                                    \
  WSTW_INLINE T __hneg(T a) { return -a; }                                                            \
  WSTW_INLINE T __habs(T a) { return T(fabsf((float)a)); }                                            \
  WSTW_INLINE T __hfma(T a, T b, T c) { return T(fmaf((float)a, (float)b, (float)c)); }               \
  WSTW_INLINE T __hmax(T a, T b) { return T(fmaxf((float)a, (float)b)); }                             \
  WSTW_INLINE T __hmin(T a, T b) { return T(fminf((float)a, (float)b)); }                             \
  WSTW_INLINE bool __hgt(T a, T b) { return a > b; }                                                  \
  WSTW_INLINE bool __hlt(T a, T b) { return a < b; }                                                  \
  WSTW_INLINE bool __hge(T a, T b) { return a >= b; }                                                 \
  WSTW_INLINE bool __hle(T a, T b) { return a <= b; }                                                 \
  WSTW_INLINE bool __heq(T a, T b) { return a == b; }                                                 \
  WSTW_INLINE bool __hne(T a, T b) { return a != b; }                                                 \
  WSTW_INLINE bool __hisnan(T a) { return a != a; }                                                   \
  WSTW_INLINE T hexp(T a) { return T(expf((float)a)); }                                               \
  WSTW_INLINE T hlog(T a) { return T(logf((float)a)); }                                               \
  WSTW_INLINE T hsqrt(T a) { return T(sqrtf((float)a)); }                                             \
  WSTW_INLINE T hrsqrt(T a) { return T(rsqrtf((float)a)); }                                           \
  WSTW_INLINE T hrcp(T a) { return T(1.f / (float)a); }                                               \
  WSTW_INLINE T2 operator+(T2 a, T2 b) { return {a.x + b.x, a.y + b.y}; }                             \
  WSTW_INLINE T2 operator-(T2 a, T2 b) { return {a.x - b.x, a.y - b.y}; }                             \
  WSTW_INLINE T2 operator*(T2 a, T2 b) { return {a.x * b.x, a.y * b.y}; }                             \
  WSTW_INLINE T2 operator/(T2 a, T2 b) { return {a.x / b.x, a.y / b.y}; }                             \
  WSTW_INLINE T2& operator+=(T2& a, T2 b) { return a = a + b; }                                       \
  WSTW_INLINE T2& operator*=(T2& a, T2 b) { return a = a * b; }                                       \
  WSTW_INLINE T2 __hadd2(T2 a, T2 b) { return a + b; }                                                \
  WSTW_INLINE T2 __hsub2(T2 a, T2 b) { return a - b; }                                                \
  WSTW_INLINE T2 __hmul2(T2 a, T2 b) { return a * b; }                                                \
  WSTW_INLINE T2 __h2div(T2 a, T2 b) { return a / b; }                                                \
  WSTW_INLINE T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
  WSTW_INLINE T2 __hmax2(T2 a, T2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }                 \
  WSTW_INLINE T2 __hmin2(T2 a, T2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
WSTW_HALF_OPS(__half, __half2)
WSTW_HALF_OPS(__nv_bfloat16, __nv_bfloat162)
#undef WSTW_HALF_OPS
// Mixed operands: half with a number of another type is float, as conversions make it.
#define WSTW_MIXED(T, U)                                                 \
  WSTW_INLINE float operator+(T a, U b) { return (float)a + (float)b; }  \
  WSTW_INLINE float operator-(T a, U b) { return (float)a - (float)b; }  \
  WSTW_INLINE float operator*(T a, U b) { return (float)a * (float)b; }  \
  WSTW_INLINE float operator/(T a, U b) { return (float)a / (float)b; }  \
  WSTW_INLINE bool operator<(T a, U b) { return (float)a < (float)b; }   \
  WSTW_INLINE bool operator>(T a, U b) { return (float)a > (float)b; }   \
  WSTW_INLINE bool operator<=(T a, U b) { return (float)a <= (float)b; } \
  WSTW_INLINE bool operator>=(T a, U b) { return (float)a >= (float)b; } \
  WSTW_INLINE bool operator==(T a, U b) { return (float)a == (float)b; } \
  WSTW_INLINE bool operator!=(T a, U b) { return (float)a != (float)b; }
WSTW_MIXED(__half, float)
WSTW_MIXED(float, __half) WSTW_MIXED(__half, int) WSTW_MIXED(int, __half) WSTW_MIXED(__nv_bfloat16, float)
    WSTW_MIXED(float, __nv_bfloat16) WSTW_MIXED(__nv_bfloat16, int) WSTW_MIXED(int, __nv_bfloat16)
#undef WSTW_MIXED
        WSTW_INLINE float __half2float(__half v) {
  return (float)v;
}
WSTW_INLINE __half __float2half(float v) { return __half(v); }
WSTW_INLINE __half __float2half_rn(float v) { return __half(v); }
WSTW_INLINE __half __int2half_rn(int v) { return __half(v); }
WSTW_INLINE int __half2int_rn(__half v) { return (int)rintf((float)v); }
WSTW_INLINE unsigned short __half_as_ushort(__half v) { return __builtin_bit_cast(unsigned short, v.v); }
WSTW_INLINE __half __ushort_as_half(unsigned short v) {
  __half h;
  h.v = __builtin_bit_cast(_Float16, v);
  return h;
}
WSTW_INLINE __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
WSTW_INLINE __half2 __float2half2_rn(float a) { return {__half(a), __half(a)}; }
WSTW_INLINE __half2 __float22half2_rn(float2 a) { return {__half(a.x), __half(a.y)}; }
WSTW_INLINE __half2 __halves2half2(__half a, __half b) { return {a, b}; }
WSTW_INLINE __half2 __half2half2(__half a) { return {a, a}; }
WSTW_INLINE __half2 make_half2(__half a, __half b) { return {a, b}; }
WSTW_INLINE float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
WSTW_INLINE __half __low2half(__half2 v) { return v.x; }
WSTW_INLINE __half __high2half(__half2 v) { return v.y; }
WSTW_INLINE float __low2float(__half2 v) { return (float)v.x; }
WSTW_INLINE float __high2float(__half2 v) { return (float)v.y; }
WSTW_INLINE float __bfloat162float(__nv_bfloat16 v) { return (float)v; }
WSTW_INLINE __nv_bfloat16 __float2bfloat16(float v) { return __nv_bfloat16(v); }
WSTW_INLINE __nv_bfloat16 __float2bfloat16_rn(float v) { return __nv_bfloat16(v); }
WSTW_INLINE __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  return {__nv_bfloat16(a), __nv_bfloat16(b)};
}
WSTW_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
WSTW_INLINE float2 __bfloat1622float2(__nv_bfloat162 v) { return {(float)v.x, (float)v.y}; }

// ---- atomics
// ------------------------------------------------------------------------------------------------------------
template <class T>
struct wstw_word_of;
template <>
struct wstw_word_of<float> {
  typedef unsigned type;
};
template <>
struct wstw_word_of<double> {
  typedef unsigned long long type;
};
template <>
struct wstw_word_of<__half> {
  typedef unsigned short type;
};
template <>
struct wstw_word_of<__nv_bfloat16> {
  typedef unsigned short type;
};
template <class T, class F>
WSTW_INLINE T wstw_update(T* p, F next) {
  typedef typename wstw_word_of<T>::type W;
  W* const word = (W*)p;
  W old = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const T before = __builtin_bit_cast(T, old);
    const T after = next(before);
    if (__atomic_compare_exchange_n(word, &old, __builtin_bit_cast(W, after), false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
      return before;
  }
}
template <class T, class F>
WSTW_INLINE T wstw_update_int(T* p, F next) {
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &old, next(old), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
#define WSTW_ATOMIC_INT(T)                                                                    \
  WSTW_INLINE T atomicAdd(T* p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }   \
  WSTW_INLINE T atomicSub(T* p, T v) { return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED); }   \
  WSTW_INLINE T atomicAnd(T* p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }   \
  WSTW_INLINE T atomicOr(T* p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }     \
  WSTW_INLINE T atomicXor(T* p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); }   \
  WSTW_INLINE T atomicExch(T* p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); } \
  WSTW_INLINE T atomicMax(T* p, T v) {                                                        \
    return wstw_update_int(p, [=](T o) { return o < v ? v : o; });                            \
  }                                                                                           \
  WSTW_INLINE T atomicMin(T* p, T v) {                                                        \
    return wstw_update_int(p, [=](T o) { return v < o ? v : o; });                            \
  }                                                                                           \
  WSTW_INLINE T atomicCAS(T* p, T expected, T v) {                                            \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);  \
    return expected;                                                                          \
  }
WSTW_ATOMIC_INT(int)
WSTW_ATOMIC_INT(unsigned)
WSTW_ATOMIC_INT(long long)
WSTW_ATOMIC_INT(unsigned long long)
#undef WSTW_ATOMIC_INT
WSTW_INLINE unsigned short atomicCAS(unsigned short* p, unsigned short expected, unsigned short v) {
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
WSTW_INLINE unsigned atomicInc(unsigned* p, unsigned v) {
  return wstw_update_int(p, [=](unsigned o) { return o >= v ? 0u : o + 1u; });
}
WSTW_INLINE unsigned atomicDec(unsigned* p, unsigned v) {
  return wstw_update_int(p, [=](unsigned o) { return o == 0u || o > v ? v : o - 1u; });
}
WSTW_INLINE float atomicAdd(float* p, float v) {
  return wstw_update(p, [=](float o) { return o + v; });
}
WSTW_INLINE double atomicAdd(double* p, double v) {
  return wstw_update(p, [=](double o) { return o + v; });
}
WSTW_INLINE __half atomicAdd(__half* p, __half v) {
  return wstw_update(p, [=](__half o) { return o + v; });
}
WSTW_INLINE __nv_bfloat16 atomicAdd(__nv_bfloat16* p, __nv_bfloat16 v) {
  return wstw_update(p, [=](__nv_bfloat16 o) { return o + v; });
}
WSTW_INLINE float atomicExch(float* p, float v) {
  return wstw_update(p, [=](float) { return v; });
}
#define atomicAdd_block atomicAdd
#define atomicAdd_system atomicAdd
#define atomicMax_block atomicMax
#define atomicMin_block atomicMin

// ---- cooperative groups
// -------------------------------------------------------------------------------------------------
namespace cooperative_groups {
class thread_block {
 public:
  explicit thread_block(const wstw_ctx& c) : wstw_c(c) {}
  void sync() const { wstw_barrier(wstw_c, kWstwSync, 0); }
  unsigned thread_rank() const { return wstw_c.rank; }
  unsigned size() const { return wstw_c.block_dim.x * wstw_c.block_dim.y * wstw_c.block_dim.z; }
  unsigned num_threads() const { return size(); }
  uint3 thread_index() const { return wstw_u3(wstw_c.thread_idx); }
  uint3 group_index() const { return wstw_u3(wstw_c.block_idx); }
  dim3 group_dim() const { return wstw_u3(wstw_c.block_dim); }
  dim3 dim_threads() const { return wstw_u3(wstw_c.block_dim); }
  wstw_ctx wstw_c;
};
class grid_group {
 public:
  explicit grid_group(const wstw_ctx& c) : wstw_c(c) {}
  void sync() const { wstw_c.block->runtime->grid_sync(&wstw_c); }
  bool is_valid() const { return true; }
  unsigned long long block_rank() const {
    return wstw_c.block_idx.x +
           (unsigned long long)wstw_c.grid_dim.x *
               (wstw_c.block_idx.y + (unsigned long long)wstw_c.grid_dim.y * wstw_c.block_idx.z);
  }
  unsigned long long num_blocks() const {
    return (unsigned long long)wstw_c.grid_dim.x * wstw_c.grid_dim.y * wstw_c.grid_dim.z;
  }
  unsigned long long thread_rank() const { return block_rank() * wstw_size() + wstw_c.rank; }
  unsigned long long size() const { return num_blocks() * wstw_size(); }
  unsigned long long num_threads() const { return size(); }
  dim3 group_dim() const { return wstw_u3(wstw_c.grid_dim); }

 private:
  unsigned long long wstw_size() const {
    return (unsigned long long)wstw_c.block_dim.x * wstw_c.block_dim.y * wstw_c.block_dim.z;
  }
  wstw_ctx wstw_c;
};
template <unsigned N, class Parent = void>
class thread_block_tile {
  static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0, "tiles of 1, 2, 4, 8, 16 or 32 threads");

 public:
  explicit thread_block_tile(const wstw_ctx& c) : wstw_c(c) {}
  void sync() const { wstw_warp(wstw_c, kWstwWarpSync, wstw_mask(), 0, 0); }
  unsigned thread_rank() const { return wstw_c.rank & (N - 1); }
  static constexpr unsigned size() { return N; }
  static constexpr unsigned num_threads() { return N; }
  unsigned meta_group_rank() const { return wstw_c.rank / N; }
  unsigned meta_group_size() const {
    return (wstw_c.block_dim.x * wstw_c.block_dim.y * wstw_c.block_dim.z + N - 1) / N;
  }
  template <class T>
  T shfl(T v, int source) const {
    return wstw_shfl(wstw_c, wstw_mask(), v, source, (int)N);
  }
  template <class T>
  T shfl_up(T v, unsigned delta) const {
    return wstw_shfl_up(wstw_c, wstw_mask(), v, delta, (int)N);
  }
  template <class T>
  T shfl_down(T v, unsigned delta) const {
    return wstw_shfl_down(wstw_c, wstw_mask(), v, delta, (int)N);
  }
  template <class T>
  T shfl_xor(T v, unsigned bits) const {
    return wstw_shfl_xor(wstw_c, wstw_mask(), v, (int)bits, (int)N);
  }
  int any(int p) const { return (int)wstw_warp(wstw_c, kWstwAny, wstw_mask(), p ? 1 : 0, 0); }
  int all(int p) const { return (int)wstw_warp(wstw_c, kWstwAll, wstw_mask(), p ? 1 : 0, 0); }
  unsigned ballot(int p) const {
    return (unsigned)wstw_warp(wstw_c, kWstwBallot, wstw_mask(), p ? 1 : 0, 0) >> wstw_first();
  }

 private:
  unsigned wstw_first() const { return wstw_c.rank & 31u & ~(N - 1); }
  unsigned wstw_mask() const { return (N == 32 ? ~0u : ((1u << (N & 31)) - 1u)) << wstw_first(); }

 public:
  wstw_ctx wstw_c;
};
WSTW_INLINE thread_block wstw_this_thread_block(const wstw_ctx& c) { return thread_block(c); }
WSTW_INLINE grid_group wstw_this_grid(const wstw_ctx& c) { return grid_group(c); }
template <unsigned N>
WSTW_INLINE thread_block_tile<N> tiled_partition(const thread_block& b) {
  return thread_block_tile<N>(b.wstw_c);
}
template <unsigned N, unsigned M>
WSTW_INLINE thread_block_tile<N> tiled_partition(const thread_block_tile<M>& t) {
  static_assert(N <= M, "a part is no larger than the whole");
  return thread_block_tile<N>(t.wstw_c);
}
template <class G>
WSTW_INLINE void sync(const G& g) {
  g.sync();
}
template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a > b ? a : b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return a < b ? a : b; }
};
template <unsigned N, class P, class T, class Op>
WSTW_INLINE T reduce(const thread_block_tile<N, P>& tile, T v, Op op) {
  for (unsigned offset = N / 2; offset > 0; offset /= 2) v = op(v, tile.shfl_xor(v, offset));
  return v;
}
}  // namespace cooperative_groups
#define this_thread_block() wstw_this_thread_block(wstw_)
#define this_grid() wstw_this_grid(wstw_)

// ---- how a kernel is called
// ---------------------------------------------------------------------------------------------
template <class T>
struct wstw_kind {
  static constexpr wstw_param value = {__is_enum(T) ? kWstwInteger : kWstwOther, sizeof(T)};
};
template <class T>
struct wstw_kind<T*> {
  static constexpr wstw_param value = {kWstwPointer, 8};
};
#define WSTW_KIND(T, K)                                 \
  template <>                                           \
  struct wstw_kind<T> {                                 \
    static constexpr wstw_param value = {K, sizeof(T)}; \
  };
WSTW_KIND(bool, kWstwInteger)
WSTW_KIND(char, kWstwInteger) WSTW_KIND(signed char, kWstwInteger) WSTW_KIND(unsigned char, kWstwInteger)
    WSTW_KIND(short, kWstwInteger) WSTW_KIND(unsigned short, kWstwInteger) WSTW_KIND(int, kWstwInteger)
        WSTW_KIND(unsigned, kWstwInteger) WSTW_KIND(long, kWstwInteger) WSTW_KIND(unsigned long, kWstwInteger)
            WSTW_KIND(long long, kWstwInteger) WSTW_KIND(unsigned long long, kWstwInteger)
                WSTW_KIND(float, kWstwFloat) WSTW_KIND(double, kWstwFloat) WSTW_KIND(__half, kWstwFloat)
                    WSTW_KIND(__nv_bfloat16, kWstwFloat)
#undef WSTW_KIND

                        template <unsigned long... I>
                        struct wstw_seq {
};
template <class T>
WSTW_INLINE T wstw_load(const void* p) {
  return *(const T*)p;
}
template <class T>
struct wstw_argument {
  WSTW_MEMBER static T load(const void* p) { return *(const T*)p; }
};
template <class T>
struct wstw_argument<T*> {  // a parameter of type float4* is as good as a cast
  WSTW_MEMBER static T* load(const void* p) { return wstw_caster<T*>::cast(*(void* const*)p); }
};

// Each on its own: g++ draws no range from a condition with `||`.
#define WSTW_KNOWN(e) \
  if (!(e)) __builtin_unreachable()

// Guards that the rewriter has found: `if (WSTW_ENTRY(i < n)) …` as the last statement, `if (WSTW_EXIT(i >=
// n)) return;`.
#define WSTW_ENTRY(...) \
  (wstw_.guard == 0 ? (__VA_ARGS__) : wstw_.guard == 1 || (*wstw_.passes &= (bool)(__VA_ARGS__), false))
#define WSTW_EXIT(...) \
  (wstw_.guard == 0 ? (__VA_ARGS__) : wstw_.guard == 2 && !(*wstw_.passes &= !(__VA_ARGS__)))
#define WSTW_LAST_EXIT(...) \
  (wstw_.guard == 0 ? (__VA_ARGS__) : wstw_.guard == 2 && (*wstw_.passes &= !(__VA_ARGS__), true))

// The threads [first, last) of a row of `count` that `passes`, which are neighbours.
template <class Test>
WSTW_INLINE void wstw_passing(unsigned count, Test passes, unsigned* first, unsigned* last) {
  unsigned low = 0, high = count;
  const bool front = passes(0u), back = passes(count - 1);
  if (!front && !back) {
    while (low < count && !passes(low)) ++low;
    high = low;
    while (high < count && passes(high)) ++high;
  } else if (!front || !back) {
    // The place where it changes, by halves.
    unsigned known = 0, other = count - 1;
    while (other - known > 1) {
      const unsigned middle = (known + other) / 2;
      (passes(middle) == front ? known : other) = middle;
    }
    (front ? high : low) = other;
  }
  *first = low;
  *last = high;
}

// A kernel whose threads wait, split into loops over threads (the rewriter's work). It is called once a
// block.
#define WSTW_BLOCK_BEGIN                     \
  const wstw_ctx& wstw_o = wstw_;            \
  const wstw_uint3 wstw_b = wstw_.block_dim; \
  const unsigned wstw_n = wstw_b.x * wstw_b.y * wstw_b.z;
#define WSTW_THREADS                                                           \
  for (unsigned wstw_z = 0, wstw_r = 0; wstw_z < wstw_b.z; ++wstw_z)           \
    for (unsigned wstw_y = 0; wstw_y < wstw_b.y; ++wstw_y, wstw_r += wstw_b.x) \
  _Pragma("GCC ivdep") for (unsigned wstw_x = 0; wstw_x < wstw_b.x; ++wstw_x)
#define WSTW_THREAD                                 \
  const unsigned wstw_t = wstw_r + wstw_x;          \
  const wstw_ctx wstw_ = {{wstw_x, wstw_y, wstw_z}, \
                          wstw_o.block_idx,         \
                          wstw_b,                   \
                          wstw_o.grid_dim,          \
                          wstw_o.block,             \
                          wstw_t,                   \
                          0,                        \
                          nullptr};
#define WSTW_IN_BLOCK(lane) ((wstw_t & ~31u) + (lane) < wstw_n)
template <class T>
struct wstw_no_reference {
  typedef T type;
};
template <class T>
struct wstw_no_reference<T&> {
  typedef T type;
};
template <class T>
struct wstw_no_reference<T&&> {
  typedef T type;
};
template <class T>
using wstw_plain = typename wstw_no_cv<typename wstw_no_reference<T>::type>::type;
template <class T>
WSTW_INLINE void wstw_put(char* row, unsigned t, T v) {
  static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
  ((T*)row)[t] = v;
}
template <class T>
WSTW_INLINE T wstw_take(const char* row, unsigned lane, unsigned t, bool takes_part) {
  return ((const T*)row)[takes_part ? (t & ~31u) + lane : t];
}
// A shuffle with a full mask in a branch: whole warps take it, or none of their lanes that have not returned.
static __attribute__((noinline, unused)) void wstw_check_warps(const wstw_ctx& c, const bool* in,
                                                               const bool* gone) {
  const unsigned n = c.block_dim.x * c.block_dim.y * c.block_dim.z;
  for (unsigned first = 0; first < n; first += 32) {
    bool some = false, others = false;
    for (unsigned t = first; t < n && t < first + 32; ++t) {
      if (gone && gone[t]) continue;
      some |= in[t];
      others |= !in[t];
    }
    if (some && others)
      c.block->runtime->fail(
          kWstwUnsupported, "a warp-level operation in a divergent branch: lanes of its mask wait elsewhere");
  }
}

enum wstw_form { kWstwEachThread, kWstwGuarded, kWstwWholeBlock };
template <auto F, wstw_form Form>
struct wstw_launch;
template <class... P, void (*F)(const wstw_ctx&, P...), wstw_form Form>
struct wstw_launch<F, Form> {
  static constexpr unsigned count = sizeof...(P);
  static constexpr wstw_param params[sizeof...(P) + 1] = {wstw_kind<typename wstw_no_cv<P>::type>::value...,
                                                          {0, 0}};

  // All threads of some blocks, none of which waits. The bounds let the compiler see that thread numbers do
  // not wrap around: without them nothing vectorises. The launch checks them.
  __attribute__((flatten)) static void all(wstw_block* block, unsigned long long first,
                                           unsigned long long last, P... p) {
    const wstw_uint3 bd = block->block_dim, gd = block->grid_dim;
    WSTW_KNOWN(bd.x > 0u);
    WSTW_KNOWN(bd.x <= 1024u);
    WSTW_KNOWN(bd.y > 0u);
    WSTW_KNOWN(bd.y <= 1024u);
    WSTW_KNOWN(bd.z > 0u);
    WSTW_KNOWN(bd.z <= 64u);
    for (unsigned b = (unsigned)first; b < (unsigned)last; ++b) {  // 64 bits would hide the ranges
      const wstw_uint3 bi = {b % gd.x, b / gd.x % gd.y, b / gd.x / gd.y};
      WSTW_KNOWN(bi.x < 1u << 20);
      WSTW_KNOWN(bi.y < 1u << 16);
      WSTW_KNOWN(bi.z < 1u << 16);
      WSTW_KNOWN(bi.x * bd.x < 1u << 28);
      WSTW_KNOWN(bi.y * bd.y < 1u << 26);
      block->block_idx = bi;
      if constexpr (Form == kWstwWholeBlock) {
        const wstw_ctx c = {{0, 0, 0}, bi, bd, gd, block, 0, 0, nullptr};
        F(c, p...);
        continue;
      }
      unsigned row = 0;
      for (unsigned z = 0; z < bd.z && Form != kWstwWholeBlock; ++z)
        for (unsigned y = 0; y < bd.y; ++y, row += bd.x) {
          unsigned begin = 0, end = bd.x;
          if constexpr (Form == kWstwGuarded) {
            const auto passes = [&](unsigned x) {
              bool all = true;
              const wstw_ctx c = {{x, y, z}, bi, bd, gd, block, row + x, 2, &all};
              F(c, p...);
              return all;
            };
            wstw_passing(bd.x, passes, &begin, &end);
            WSTW_KNOWN(end <= 1024u);
          }
#pragma GCC ivdep
          for (unsigned x = begin; x < end; ++x) {
            const wstw_ctx c = {{x, y, z}, bi, bd, gd, block, row + x, Form == kWstwGuarded ? 1u : 0u,
                                nullptr};
            F(c, p...);
          }
        }
    }
  }
  template <unsigned long... I>
  WSTW_MEMBER static void spread(wstw_block* block, unsigned long long first, unsigned long long last,
                                 void* const* args, wstw_seq<I...>) {
    all(block, first, last, wstw_argument<typename wstw_no_cv<P>::type>::load(args[I])...);
  }
  static void blocks(wstw_block* block, unsigned long long first, unsigned long long last,
                     void* const* args) {
    spread(block, first, last, args, wstw_seq<__integer_pack(sizeof...(P))...>{});
  }
  template <unsigned long... I>
  WSTW_MEMBER static void spread_one(const wstw_ctx* c, void* const* args, wstw_seq<I...>) {
    F(*c, wstw_argument<typename wstw_no_cv<P>::type>::load(args[I])...);
  }
  static void thread(const wstw_ctx* c, void* const* args) {
    spread_one(c, args, wstw_seq<__integer_pack(sizeof...(P))...>{});
  }
};

// CUDA's vocabulary for the CPU twin. Its text stands behind twin_abi.h and in front of every candidate;
// there is no other header. Candidates see no name of ours that does not begin with `wstw_`. Functions on
// floats are written so that g++ can vectorise a loop over threads that calls them: no branches, no errno, no
// table.

#define WSTW_INLINE static inline __attribute__((always_inline, unused))
#define WSTW_MEMBER inline __attribute__((always_inline))
// The checked form (twin_abi.h) is compiled with -fsanitize=thread, by which g++ calls a function before each
// access to memory. What is no access of the candidate's own is left out.
#ifdef WSTW_CHECKED
#define WSTW_NOT_CHECKED static __attribute__((noinline, unused, no_sanitize("thread")))
#define WSTW_TABLE wstw_checked_table
#define WSTW_ACCESS &wstw_before_access
#define WSTW_BLOCKS(launch) nullptr, launch::thread
#define WSTW_ATOMIC_ACCESS(p) wstw_before_access((const void*)(p), sizeof *(p), kWstwAtomic)
static void (*wstw_before_access)(const void*, unsigned long, int);
extern "C" {
#define WSTW_HOOK(name, bytes, access)                                       \
  __attribute__((used, no_sanitize("thread"))) void __tsan_##name(void* p) { \
    wstw_before_access(p, bytes, access);                                    \
  }
#define WSTW_HOOKS(bytes)                                     \
  WSTW_HOOK(read##bytes, bytes, kWstwRead)                    \
  WSTW_HOOK(write##bytes, bytes, kWstwWrite)                  \
  WSTW_HOOK(unaligned_read##bytes, bytes, kWstwRead)          \
  WSTW_HOOK(unaligned_write##bytes, bytes, kWstwWrite)        \
  WSTW_HOOK(volatile_read##bytes, bytes, kWstwRead)           \
  WSTW_HOOK(volatile_write##bytes, bytes, kWstwWrite)         \
  WSTW_HOOK(unaligned_volatile_read##bytes, bytes, kWstwRead) \
  WSTW_HOOK(unaligned_volatile_write##bytes, bytes, kWstwWrite)
WSTW_HOOKS(1)
WSTW_HOOKS(2)
WSTW_HOOKS(4)
WSTW_HOOKS(8)
WSTW_HOOKS(16)
#undef WSTW_HOOKS
#undef WSTW_HOOK
__attribute__((used, no_sanitize("thread"))) void __tsan_read_range(void* p, long bytes) {
  wstw_before_access(p, (unsigned long)bytes, kWstwRead);
}
__attribute__((used, no_sanitize("thread"))) void __tsan_write_range(void* p, long bytes) {
  wstw_before_access(p, (unsigned long)bytes, kWstwWrite);
}
__attribute__((used, no_sanitize("thread"))) void __tsan_vptr_update(void*, void*) {}
__attribute__((used, no_sanitize("thread"))) void __tsan_init() {}
}
#else
#define WSTW_NOT_CHECKED WSTW_INLINE
#define WSTW_TABLE wstw_module_table
#define WSTW_ACCESS nullptr
#define WSTW_BLOCKS(launch) launch::blocks, nullptr
#define WSTW_ATOMIC_ACCESS(p) ((void)0)
#endif

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
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __PTRDIFF_TYPE__ ssize_t;

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
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 48
#define CUDA_VERSION 13000
#define CUDART_VERSION 13000
#define __CUDA_ARCH__ 800
#define __WARPSMITH_TWIN__ 1

#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define HUGE_VALF (__builtin_inff())
#define HUGE_VAL (__builtin_inf())
#define NULL __null
#define offsetof(type, member) __builtin_offsetof(type, member)
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define FLT_TRUE_MIN __FLT_DENORM_MIN__
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#define DBL_TRUE_MIN __DBL_DENORM_MIN__
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define LONG_MAX __LONG_MAX__
#define LONG_MIN (-__LONG_MAX__ - 1l)
#define ULONG_MAX (__LONG_MAX__ * 2ul + 1ul)
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
#define INT16_MIN (-32768)
#define UINT16_MAX 65535
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT32_MAX UINT_MAX
#define INT64_MAX LLONG_MAX
#define INT64_MIN LLONG_MIN
#define SIZE_MAX ULONG_MAX
#define UINT64_MAX ULLONG_MAX
#define CUDART_INF_F (__builtin_inff())
#define CUDART_NAN_F __int_as_float(0x7fffffffU)
#define CUDART_MIN_DENORM_F __int_as_float(0x00000001U)
#define CUDART_MAX_NORMAL_F __int_as_float(0x7f7fffffU)
#define CUDART_NEG_ZERO_F __int_as_float(0x80000000U)
#define CUDART_ZERO_F 0.0F
#define CUDART_ONE_F 1.0F
#define CUDART_SQRT_HALF_F 0.707106781F
#define CUDART_SQRT_TWO_F 1.414213562F
#define CUDART_THIRD_F 0.333333333F
#define CUDART_PIO4_F 0.785398163F
#define CUDART_PIO2_F 1.570796327F
#define CUDART_3PIO4_F 2.356194490F
#define CUDART_2_OVER_PI_F 0.636619772F
#define CUDART_SQRT_2_OVER_PI_F 0.797884561F
#define CUDART_PI_F 3.141592654F
#define CUDART_L2E_F 1.442695041F
#define CUDART_L2T_F 3.321928094F
#define CUDART_LG2_F 0.301029996F
#define CUDART_LGE_F 0.434294482F
#define CUDART_LN2_F 0.693147181F
#define CUDART_LNT_F 2.302585093F
#define CUDART_LNPI_F 1.144729886F
#define CUDART_TWO_TO_M126_F 1.175494351e-38F
#define CUDART_TWO_TO_126_F 8.507059173e37F
#define CUDART_TWO_TO_23_F 8388608.0F
#define CUDART_TWO_TO_24_F 16777216.0F
#define CUDART_TWO_TO_31_F 2147483648.0F
#define CUDART_TWO_TO_32_F 4294967296.0F
#define CUDART_INF (__builtin_inf())
#define CUDART_NAN __longlong_as_double(0xfff8000000000000ULL)
#define CUDART_NEG_ZERO __longlong_as_double(0x8000000000000000ULL)
#define CUDART_MIN_DENORM __longlong_as_double(0x0000000000000001ULL)
#define CUDART_ZERO 0.0
#define CUDART_ONE 1.0
#define CUDART_SQRT_TWO 1.4142135623730951e+0
#define CUDART_SQRT_HALF 7.0710678118654757e-1
#define CUDART_THIRD 3.3333333333333333e-1
#define CUDART_TWOTHIRD 6.6666666666666667e-1
#define CUDART_PIO4 7.8539816339744828e-1
#define CUDART_PIO2 1.5707963267948966e+0
#define CUDART_3PIO4 2.3561944901923448e+0
#define CUDART_2_OVER_PI 6.3661977236758138e-1
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_SQRT_2PI 2.5066282746310007e+0
#define CUDART_SQRT_PIO2 1.2533141373155003e+0
#define CUDART_SQRT_2OPI 7.9788456080286536e-1
#define CUDART_L2E 1.4426950408889634e+0
#define CUDART_L2T 3.3219280948873622e+0
#define CUDART_LG2 3.0102999566398120e-1
#define CUDART_LGE 4.3429448190325182e-1
#define CUDART_LN2 6.9314718055994529e-1
#define CUDART_LNT 2.3025850929940459e+0
#define CUDART_LNPI 1.1447298858494002e+0
#define CUDART_TWO_TO_23 8388608.0
#define CUDART_TWO_TO_52 4503599627370496.0
#define CUDART_TWO_TO_53 9007199254740992.0
#define CUDART_TWO_TO_54 18014398509481984.0
#define CUDART_TWO_TO_M54 5.5511151231257827e-17
#define CUDART_TWO_TO_M1022 2.22507385850720140e-308
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_E 2.7182818284590452354
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_LOG10E 0.43429448190325182765
#define M_LOG2E 1.4426950408889634074
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_2_SQRTPI 1.12837916709551257390

// ---- vector types
// -------------------------------------------------------------------------------------------------------
// Aligned as on a GPU.
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

template <class T>
inline constexpr size_t wstw_alignment = alignof(T);
template <>
inline constexpr size_t wstw_alignment<void> = 1;
template <>
inline constexpr size_t wstw_alignment<const void> = 1;
template <>
inline constexpr size_t wstw_alignment<volatile void> = 1;
template <>
inline constexpr size_t wstw_alignment<const volatile void> = 1;
template <class R, class... A>
inline constexpr size_t wstw_alignment<R(A...)> = 1;

// A pointer about to become a pointer to T. Where it is not aligned for T the result traps when it is
// followed (its top bit makes the address no address), but still tests as misaligned and compares as before.
// Cast on to a type for which it is aligned, it is good again. Memory of the thread's own is left out: a
// GPU's compiler aligns local arrays for what is done to them.
template <class T>
struct wstw_pointer {
  uintptr_t address;
  template <class U>
  WSTW_MEMBER wstw_pointer(U* p)
      : address(wstw_alignment<U> == wstw_alignment<T> ? (uintptr_t)p : checked((uintptr_t)p)) {}
  WSTW_MEMBER wstw_pointer(uintptr_t p) : address(checked(p)) {}
  template <class N>
  requires(__is_same(N, decltype(nullptr))) WSTW_MEMBER wstw_pointer(N) : address(0) {}
  template <class U>
  WSTW_MEMBER operator U*() const {
    return (U*)address;
  }

  WSTW_MEMBER static uintptr_t checked(uintptr_t p) {
    constexpr uintptr_t trap = (uintptr_t)1 << 63, near = 64 << 10;
    p &= ~trap;
    if constexpr (wstw_alignment<T> == 1) return p;
    const bool aligned = (p & (wstw_alignment<T> - 1)) == 0;
    return aligned || p - (uintptr_t)__builtin_frame_address(0) + near < 2 * near ? p : p | trap;
  }
};
// What a cast to T goes through: for pointers the check, for others nothing.
template <class T>
struct wstw_cast_of {
  typedef T type;
};
template <class T>
struct wstw_cast_of<T*> {
  typedef wstw_pointer<T> type;
};
template <class T>
struct wstw_cast_of<T* const> {
  typedef wstw_pointer<T> type;
};
template <class T>
struct wstw_cast_of<T* __restrict__> {
  typedef wstw_pointer<T> type;
};
template <class T>
struct wstw_cast_of<T* const __restrict__> {
  typedef wstw_pointer<T> type;
};
template <class T>
using wstw_cast = typename wstw_cast_of<T>::type;
// Drops the promise: it would take the check away.
#define __builtin_assume_aligned(p, ...) ((void*)(p))

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
    return (T*)wstw_pointer<T>(p);
  }
};
template <class T>
struct wstw_caster<T&> {
  template <class From>
  WSTW_MEMBER static T& cast(From& v) {
    return *wstw_caster<T*>::cast(&v);
  }
};
template <class T>
struct wstw_is_reference {
  static constexpr bool value = false;
};
template <class T>
struct wstw_is_reference<T&> {
  static constexpr bool value = true;
};
// reinterpret_cast, looking at the alignment. By value where it gives one: in a template g++ does not bind
// the address of an element of a __restrict__ pointer to a reference.
template <class To, class From>
requires(!wstw_is_reference<To>::value) WSTW_INLINE To wstw_reinterpret(From v) {
  return wstw_caster<To>::cast(v);
}
template <class To, class From>
requires(wstw_is_reference<To>::value) WSTW_INLINE To wstw_reinterpret(From& v) {
  return wstw_caster<To>::cast(v);
}

template <class T>
struct wstw_to_void {
  static constexpr bool value = false;
};
template <class T>
struct wstw_to_void<T*> {
  static constexpr bool value = wstw_same<typename wstw_no_cv<T>::type, void>::value;
};
// static_cast to a pointer.
template <class To, class From>
WSTW_INLINE To wstw_static(From v) {
  if constexpr (wstw_to_void<From>::value)
    return wstw_caster<To>::cast(v);
  else
    return static_cast<To>(v);
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
WSTW_NOT_CHECKED T& wstw_shared(const wstw_ctx& c) {
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
WSTW_NOT_CHECKED void wstw_fence() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
WSTW_NOT_CHECKED void wstw_fence_of_all() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
WSTW_INLINE int wstw_barrier(const wstw_ctx& c, int kind, int predicate) {
  return c.block->runtime->barrier(&c, kind, predicate);
}
#define __syncthreads() ((void)wstw_barrier(wstw_, kWstwSync, 0))
#define __syncthreads_count(p) wstw_barrier(wstw_, kWstwCount, (p) ? 1 : 0)
#define __syncthreads_and(p) wstw_barrier(wstw_, kWstwAnd, (p) ? 1 : 0)
#define __syncthreads_or(p) wstw_barrier(wstw_, kWstwOr, (p) ? 1 : 0)
#define __threadfence() wstw_fence_of_all()
#define __threadfence_block() wstw_fence()
#define __threadfence_system() wstw_fence_of_all()
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

// ---- shifts
// -----------------------------------------------------------------------------------------------------------
// As shl and shr of a GPU: the places are unsigned and of 32 bits; from the number of bits on nothing is
// left, or the sign. The rewriter makes `a << wstw_shl << b` of `a << b`, and `a <<= wstw_shl <<= b` of `a
// <<= b`.
template <class T>
concept wstw_class = __is_class(T) || __is_union(T);
template <class T>
concept wstw_integer = !wstw_class<T> && requires(T v) {
  v % 1;
};
struct wstw_left {
  template <class T>
  WSTW_MEMBER static constexpr auto shift(T v, unsigned n) {
    constexpr unsigned bits = 8 * sizeof(+v);
    return n < bits ? v << (n & (bits - 1)) : decltype(+v)(0);
  }
};
struct wstw_right {
  template <class T>
  WSTW_MEMBER static constexpr auto shift(T v, unsigned n) {
    constexpr unsigned bits = 8 * sizeof(+v);
    if constexpr (decltype(+v)(-1) < decltype(+v)(0))
      return v >> (n < bits ? n : bits - 1);
    else
      return n < bits ? v >> (n & (bits - 1)) : decltype(+v)(0);
  }
};
template <class Way, class T>
struct wstw_shifted {
  T value;
};
template <class Way, class N>
struct wstw_places {
  N number;
};
// Operators on other things than integers are the candidate's own.
#define WSTW_SHIFT(name, op, Way)                                                                           \
  inline constexpr Way name = {};                                                                           \
  template <class T>                                                                                        \
  requires(!wstw_class<T>) WSTW_INLINE constexpr wstw_shifted<Way, T> operator op(T v, Way) { return {v}; } \
  template <wstw_class T>                                                                                   \
  WSTW_INLINE constexpr wstw_shifted<Way, T&> operator op(T& v, Way) {                                      \
    return {v};                                                                                             \
  }                                                                                                         \
  template <wstw_class T>                                                                                   \
  WSTW_INLINE constexpr wstw_shifted<Way, const T&> operator op(const T& v, Way) {                          \
    return {v};                                                                                             \
  }                                                                                                         \
  template <class T, class N>                                                                               \
  WSTW_INLINE constexpr decltype(auto) operator op(wstw_shifted<Way, T> a, N n) {                           \
    if constexpr (wstw_integer<T> && wstw_integer<N>)                                                       \
      return Way::shift(a.value, (unsigned)n);                                                              \
    else                                                                                                    \
      return a.value op n;                                                                                  \
  }                                                                                                         \
  template <class N>                                                                                        \
  WSTW_INLINE constexpr wstw_places<Way, N> operator op##=(Way, N n) {                                      \
    return {n};                                                                                             \
  }                                                                                                         \
  template <class T, class N>                                                                               \
  WSTW_INLINE constexpr T& operator op##=(T& v, wstw_places<Way, N> n) {                                    \
    if constexpr (wstw_integer<T> && wstw_integer<N>)                                                       \
      v = (typename wstw_no_cv<T>::type)Way::shift(v, (unsigned)n.number);                                  \
    else                                                                                                    \
      v op## = n.number;                                                                                    \
    return v;                                                                                               \
  }
WSTW_SHIFT(wstw_shl, <<, wstw_left)
WSTW_SHIFT(wstw_shr, >>, wstw_right)
#undef WSTW_SHIFT

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
// CUDA's very overloads: what is ambiguous there is so here.
#define WSTW_MIN_MAX(T, A, B)                                                 \
  WSTW_INLINE constexpr T min(A a, B b) { return (T)b < (T)a ? (T)b : (T)a; } \
  WSTW_INLINE constexpr T max(A a, B b) { return (T)a < (T)b ? (T)b : (T)a; }
#define WSTW_MIN_MAX_OF(S, U) \
  WSTW_MIN_MAX(S, S, S)       \
  WSTW_MIN_MAX(U, U, U)       \
  WSTW_MIN_MAX(U, S, U)       \
  WSTW_MIN_MAX(U, U, S)
WSTW_MIN_MAX_OF(int, unsigned)
WSTW_MIN_MAX_OF(long, unsigned long)
WSTW_MIN_MAX_OF(long long, unsigned long long)
#undef WSTW_MIN_MAX_OF
#undef WSTW_MIN_MAX
WSTW_INLINE constexpr int abs(int v) { return v < 0 ? -v : v; }
WSTW_INLINE constexpr long abs(long v) { return v < 0 ? -v : v; }
WSTW_INLINE constexpr long long abs(long long v) { return v < 0 ? -v : v; }
WSTW_INLINE float abs(float v) { return __builtin_fabsf(v); }
WSTW_INLINE double abs(double v) { return __builtin_fabs(v); }
WSTW_INLINE long long llabs(long long v) { return v < 0 ? -v : v; }
WSTW_INLINE unsigned umin(unsigned a, unsigned b) { return b < a ? b : a; }
WSTW_INLINE unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }

// ---- floats
// -----------------------------------------------------------------------------------------------------------
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
WSTW_INLINE double min(float a, double b) { return fmin(a, b); }
WSTW_INLINE double max(float a, double b) { return fmax(a, b); }
WSTW_INLINE double min(double a, float b) { return fmin(a, b); }
WSTW_INLINE double max(double a, float b) { return fmax(a, b); }
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
WSTW_LIBM1(asin)
WSTW_LIBM1(acos)
WSTW_LIBM1(atan)
WSTW_LIBM1(sinh)
WSTW_LIBM1(cosh)
WSTW_LIBM1(asinh)
WSTW_LIBM1(acosh)
WSTW_LIBM1(atanh)
WSTW_LIBM1(cbrt)
WSTW_LIBM1(lgamma)
WSTW_LIBM1(tgamma)
#undef WSTW_LIBM1
WSTW_INLINE float __tanf(float x) { return __builtin_tanf(x); }
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
WSTW_LIBM1(exp2)
WSTW_LIBM1(log)
WSTW_LIBM1(log2)
WSTW_LIBM1(log10)
WSTW_LIBM1(log1p)
WSTW_LIBM1(expm1)
WSTW_LIBM1(sqrt)
WSTW_LIBM1(sin)
WSTW_LIBM1(cos)
WSTW_LIBM1(tan)
WSTW_LIBM1(asin)
WSTW_LIBM1(acos)
WSTW_LIBM1(atan)
WSTW_LIBM1(sinh)
WSTW_LIBM1(cosh)
WSTW_LIBM1(tanh)
WSTW_LIBM1(erf)
WSTW_LIBM1(erfc)
WSTW_LIBM1(floor)
WSTW_LIBM1(ceil)
WSTW_LIBM1(trunc)
WSTW_LIBM1(rint)
WSTW_LIBM1(round)
WSTW_LIBM1(cbrt)
WSTW_LIBM1(fabs)
#undef WSTW_LIBM1
// CUDA's overloads of the plain names for float.
#define WSTW_FLOAT1(name) \
  WSTW_INLINE float name(float x) { return name##f(x); }
WSTW_FLOAT1(exp)
WSTW_FLOAT1(exp2)
WSTW_FLOAT1(log)
WSTW_FLOAT1(log2)
WSTW_FLOAT1(log10)
WSTW_FLOAT1(log1p)
WSTW_FLOAT1(expm1)
WSTW_FLOAT1(sqrt)
WSTW_FLOAT1(sin)
WSTW_FLOAT1(cos)
WSTW_FLOAT1(tan)
WSTW_FLOAT1(asin)
WSTW_FLOAT1(acos)
WSTW_FLOAT1(atan)
WSTW_FLOAT1(sinh)
WSTW_FLOAT1(cosh)
WSTW_FLOAT1(tanh)
WSTW_FLOAT1(erf)
WSTW_FLOAT1(erfc)
WSTW_FLOAT1(floor)
WSTW_FLOAT1(ceil)
WSTW_FLOAT1(trunc)
WSTW_FLOAT1(rint)
WSTW_FLOAT1(round)
WSTW_FLOAT1(cbrt)
WSTW_FLOAT1(fabs)
#undef WSTW_FLOAT1
WSTW_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
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

WSTW_INLINE float nanf(const char*) { return NAN; }
WSTW_INLINE double nan(const char*) { return (double)NAN; }
WSTW_INLINE long long llrintf(float v) { return (long long)__builtin_rintf(v); }
WSTW_INLINE long long llroundf(float v) { return (long long)roundf(v); }
WSTW_INLINE long lrint(double v) { return (long)__builtin_rint(v); }
WSTW_INLINE long lround(double v) { return (long)__builtin_round(v); }
WSTW_INLINE long long llrint(double v) { return (long long)__builtin_rint(v); }
WSTW_INLINE long long llround(double v) { return (long long)__builtin_round(v); }
WSTW_INLINE double fdim(double a, double b) { return a > b ? a - b : (a != a || b != b ? (double)NAN : 0.0); }
WSTW_INLINE double remainder(double a, double b) { return __builtin_remainder(a, b); }
WSTW_INLINE double ldexp(double x, int e) { return __builtin_ldexp(x, e); }
WSTW_INLINE double frexp(double x, int* e) { return __builtin_frexp(x, e); }
WSTW_INLINE double modf(double x, double* whole) { return __builtin_modf(x, whole); }
WSTW_INLINE float modff(float x, float* whole) { return __builtin_modff(x, whole); }
WSTW_INLINE double rhypot(double a, double b) { return 1.0 / __builtin_hypot(a, b); }
WSTW_INLINE double rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
WSTW_INLINE void* memcpy(void* to, const void* from, size_t n) { return __builtin_memcpy(to, from, n); }
WSTW_INLINE void* memmove(void* to, const void* from, size_t n) { return __builtin_memmove(to, from, n); }
WSTW_INLINE void* memset(void* to, int byte, size_t n) { return __builtin_memset(to, byte, n); }
WSTW_INLINE int memcmp(const void* a, const void* b, size_t n) { return __builtin_memcmp(a, b, n); }

// A float, already rounded, as an integer: the nearest that there is, and what PTX says for NaN. No branches.
template <class To, class From>
WSTW_INLINE To wstw_saturate(From v) {
  constexpr int bits = 8 * (int)sizeof(To);
  constexpr bool is_signed = (To)-1 < (To)0;
  constexpr To max = is_signed ? (To)((1ull << (bits - 1)) - 1) : (To)~0ull;
  constexpr To min = is_signed ? (To)(-max - 1) : (To)0;
  constexpr From limit = (From)2 * (From)(To)(max / 2 + 1);
  constexpr To none = sizeof(From) == 8 || bits == 64 ? (To)(1ull << (bits - 1)) : (To)0;
  const From c = v > (From)min ? v : (From)min;  // NaN: the minimum
  const To whole = (To)(c < limit ? c : (From)0);
  const To near = c < limit ? whole : max;
  return v != v ? none : near;
}
#define WSTW_TO_INTEGERS(name, From, rint, floor, ceil, trunc)                              \
  WSTW_INLINE int name##2int_rn(From v) { return wstw_saturate<int>(rint(v)); }             \
  WSTW_INLINE int name##2int_rz(From v) { return wstw_saturate<int>(trunc(v)); }            \
  WSTW_INLINE int name##2int_rd(From v) { return wstw_saturate<int>(floor(v)); }            \
  WSTW_INLINE int name##2int_ru(From v) { return wstw_saturate<int>(ceil(v)); }             \
  WSTW_INLINE unsigned name##2uint_rn(From v) { return wstw_saturate<unsigned>(rint(v)); }  \
  WSTW_INLINE unsigned name##2uint_rz(From v) { return wstw_saturate<unsigned>(trunc(v)); } \
  WSTW_INLINE unsigned name##2uint_rd(From v) { return wstw_saturate<unsigned>(floor(v)); } \
  WSTW_INLINE unsigned name##2uint_ru(From v) { return wstw_saturate<unsigned>(ceil(v)); }
WSTW_TO_INTEGERS(__float, float, __builtin_rintf, __builtin_floorf, __builtin_ceilf, __builtin_truncf)
#undef WSTW_TO_INTEGERS
WSTW_INLINE float __int2float_rn(int v) { return (float)v; }
WSTW_INLINE float __uint2float_rn(unsigned v) { return (float)v; }
WSTW_INLINE float __double2float_rn(double v) { return (float)v; }
WSTW_INLINE double __int2double_rn(int v) { return v; }
WSTW_INLINE double __uint2double_rn(unsigned v) { return v; }

template <class T>
struct wstw_as_it_is {
  typedef T type;
};
#define WSTW_LOAD(name)            \
  template <class T>               \
  WSTW_INLINE T name(const T* p) { \
    return *p;                     \
  }
#define WSTW_STORE(name)                                           \
  template <class T>                                               \
  WSTW_INLINE void name(T* p, typename wstw_as_it_is<T>::type v) { \
    *p = v;                                                        \
  }
WSTW_LOAD(__ldg)
WSTW_LOAD(__ldcs)
WSTW_LOAD(__ldca)
WSTW_LOAD(__ldcg)
WSTW_LOAD(__ldlu)
WSTW_LOAD(__ldcv)
WSTW_STORE(__stcs)
WSTW_STORE(__stcg)
WSTW_STORE(__stwt)
WSTW_STORE(__stwb)
#undef WSTW_LOAD
#undef WSTW_STORE

// ---- rarer functions
// ------------------------------------------------------------------------------------------------
// Reading what few candidates use would cost all of them some milliseconds: host_compiler.cc defines
// WSTW_USES_… for texts in which such a name can occur.
#ifdef WSTW_USES_RARER
// rc lc dp2 2hi 2lo hilo
#define WSTW_TO_LONG(name, From, rint, floor, ceil, trunc)                                  \
  WSTW_INLINE long long name##2ll_rn(From v) { return wstw_saturate<long long>(rint(v)); }  \
  WSTW_INLINE long long name##2ll_rz(From v) { return wstw_saturate<long long>(trunc(v)); } \
  WSTW_INLINE long long name##2ll_rd(From v) { return wstw_saturate<long long>(floor(v)); } \
  WSTW_INLINE long long name##2ll_ru(From v) { return wstw_saturate<long long>(ceil(v)); }  \
  WSTW_INLINE unsigned long long name##2ull_rn(From v) {                                    \
    return wstw_saturate<unsigned long long>(rint(v));                                      \
  }                                                                                         \
  WSTW_INLINE unsigned long long name##2ull_rz(From v) {                                    \
    return wstw_saturate<unsigned long long>(trunc(v));                                     \
  }                                                                                         \
  WSTW_INLINE unsigned long long name##2ull_rd(From v) {                                    \
    return wstw_saturate<unsigned long long>(floor(v));                                     \
  }                                                                                         \
  WSTW_INLINE unsigned long long name##2ull_ru(From v) { return wstw_saturate<unsigned long long>(ceil(v)); }
WSTW_TO_LONG(__float, float, __builtin_rintf, __builtin_floorf, __builtin_ceilf, __builtin_truncf)
WSTW_TO_LONG(__double, double, __builtin_rint, __builtin_floor, __builtin_ceil, __builtin_trunc)
#undef WSTW_TO_LONG
WSTW_INLINE int __double2int_rn(double v) { return wstw_saturate<int>(__builtin_rint(v)); }
WSTW_INLINE int __double2int_rz(double v) { return wstw_saturate<int>(__builtin_trunc(v)); }
WSTW_INLINE int __double2int_rd(double v) { return wstw_saturate<int>(__builtin_floor(v)); }
WSTW_INLINE int __double2int_ru(double v) { return wstw_saturate<int>(__builtin_ceil(v)); }
WSTW_INLINE unsigned __double2uint_rn(double v) { return wstw_saturate<unsigned>(__builtin_rint(v)); }
WSTW_INLINE unsigned __double2uint_rz(double v) { return wstw_saturate<unsigned>(__builtin_trunc(v)); }
WSTW_INLINE unsigned __double2uint_rd(double v) { return wstw_saturate<unsigned>(__builtin_floor(v)); }
WSTW_INLINE unsigned __double2uint_ru(double v) { return wstw_saturate<unsigned>(__builtin_ceil(v)); }

// v + rest, where `rest` is less than half a unit of v's last place, as a float: the one above (way 1), below
// (-1), or nearer to zero (0).
WSTW_INLINE float wstw_directed(double v, double rest, int way) {
  const float f = (float)v;
  const int bits = __float_as_int(f);
  const bool over = (double)f > v || ((double)f == v && rest < 0.0);
  const bool under = (double)f < v || ((double)f == v && rest > 0.0);
  const bool up = way > 0 || (way == 0 && v < 0.0);
  const bool off = up ? under : over;
  return off ? __int_as_float(up == (bits < 0) ? bits - 1 : bits + 1) : f;
}
WSTW_INLINE float wstw_add(float a, float b, int way) {
  const double x = a, y = b, sum = x + y, part = sum - x;
  return wstw_directed(sum, (x - (sum - part)) + (y - part), way);
}
WSTW_INLINE float wstw_mul(float a, float b, int way) {
  return wstw_directed((double)a * (double)b, 0.0, way);
}
WSTW_INLINE float wstw_fma(float a, float b, float c, int way) {
  const double x = (double)a * (double)b, y = c, sum = x + y, part = sum - x;
  return wstw_directed(sum, (x - (sum - part)) + (y - part), way);
}
WSTW_INLINE float wstw_div(float a, float b, int way) {
  const double q = (double)a / (double)b, left = __builtin_fma(-q, (double)b, (double)a);
  return wstw_directed(q, b < 0.f ? -left : left, way);
}
WSTW_INLINE float wstw_sqrt(float a, int way) {
  const double root = __builtin_sqrt((double)a);
  return wstw_directed(root, __builtin_fma(-root, root, (double)a), way);
}
template <class From>
WSTW_INLINE float wstw_from_integer(From v, int way) {
  const double d = (double)v;
  return wstw_directed(d, (double)((__int128)v - (__int128)d), way);
}
#define WSTW_WAY(r, way)                                                                        \
  WSTW_INLINE float __fadd_##r(float a, float b) { return wstw_add(a, b, way); }                \
  WSTW_INLINE float __fsub_##r(float a, float b) { return wstw_add(a, -b, way); }               \
  WSTW_INLINE float __fmul_##r(float a, float b) { return wstw_mul(a, b, way); }                \
  WSTW_INLINE float __fmaf_##r(float a, float b, float c) { return wstw_fma(a, b, c, way); }    \
  WSTW_INLINE float __fdiv_##r(float a, float b) { return wstw_div(a, b, way); }                \
  WSTW_INLINE float __frcp_##r(float a) { return wstw_div(1.f, a, way); }                       \
  WSTW_INLINE float __fsqrt_##r(float a) { return wstw_sqrt(a, way); }                          \
  WSTW_INLINE float __int2float_##r(int v) { return wstw_from_integer(v, way); }                \
  WSTW_INLINE float __uint2float_##r(unsigned v) { return wstw_from_integer(v, way); }          \
  WSTW_INLINE float __ll2float_##r(long long v) { return wstw_from_integer(v, way); }           \
  WSTW_INLINE float __ull2float_##r(unsigned long long v) { return wstw_from_integer(v, way); } \
  WSTW_INLINE float __double2float_##r(double v) { return wstw_directed(v, 0.0, way); }
WSTW_WAY(rz, 0)
WSTW_WAY(rd, -1)
WSTW_WAY(ru, 1)
#undef WSTW_WAY
WSTW_INLINE float __ll2float_rn(long long v) { return (float)v; }
WSTW_INLINE float __ull2float_rn(unsigned long long v) { return (float)v; }
WSTW_INLINE double __ll2double_rn(long long v) { return (double)v; }
WSTW_INLINE double __ull2double_rn(unsigned long long v) { return (double)v; }
WSTW_INLINE double __hiloint2double(int hi, int lo) {
  return __longlong_as_double((long long)(((unsigned long long)(unsigned)hi << 32) | (unsigned)lo));
}
WSTW_INLINE int __double2hiint(double v) { return (int)(__double_as_longlong(v) >> 32); }
WSTW_INLINE int __double2loint(double v) { return (int)__double_as_longlong(v); }
WSTW_INLINE double wstw_opaque(double v) {
  __asm__("" : "+x"(v));
  return v;
}
WSTW_INLINE double __dmul_rn(double a, double b) { return wstw_opaque(a * b); }
WSTW_INLINE double __dadd_rn(double a, double b) { return wstw_opaque(wstw_opaque(a) + wstw_opaque(b)); }
WSTW_INLINE double __dsub_rn(double a, double b) { return wstw_opaque(wstw_opaque(a) - wstw_opaque(b)); }
WSTW_INLINE double __ddiv_rn(double a, double b) { return a / b; }
WSTW_INLINE double __drcp_rn(double v) { return 1.0 / v; }
WSTW_INLINE double __dsqrt_rn(double v) { return __builtin_sqrt(v); }
WSTW_INLINE double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }

// Acklam's approximation and a step of Halley's method in double.
WSTW_INLINE double wstw_normal_quantile(double p) {
  const double side = p < 0.5 ? p : 1.0 - p;
  const double q = p - 0.5, r = q * q, t = __builtin_sqrt(-2.0 * __builtin_log(side));
  const double middle =
      (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
         1.383577518672690e+02) *
            r -
        3.066479806614716e+01) *
           r +
       2.506628277459239e+00) *
      q /
      (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
         6.680131188771972e+01) *
            r -
        1.328068155288572e+01) *
           r +
       1.0);
  const double tail =
      (((((-7.784894002430293e-03 * t - 3.223964580411365e-01) * t - 2.400758277161838e+00) * t -
         2.549732539343734e+00) *
            t +
        4.374664141464968e+00) *
           t +
       2.938163982698783e+00) /
      ((((7.784695709041462e-03 * t + 3.224671290700398e-01) * t + 2.445134137142996e+00) * t +
        3.754408661907416e+00) *
           t +
       1.0);
  const double x = side > 0.02425 ? middle : (p < 0.5 ? tail : -tail);
  const double error = (p < 0.5 ? 0.5 * __builtin_erfc(-x * 0.70710678118654752440) - p
                                : side - 0.5 * __builtin_erfc(x * 0.70710678118654752440));
  const double step = error * 2.50662827463100050242 * __builtin_exp(0.5 * x * x);
  const double better = x - step / (1.0 + 0.5 * x * step);
  return p > 0.0 && p < 1.0 ? better : p == 0.0 ? -HUGE_VAL : p == 1.0 ? HUGE_VAL : (double)NAN;
}
// `tail`: the probability of one side, exact where it is small.
WSTW_INLINE float wstw_quantile_of_tail(double tail, bool upper) {
  const double x = wstw_normal_quantile(tail);
  return (float)(upper ? -x : x);
}
WSTW_INLINE float normcdfinvf(float p) { return wstw_quantile_of_tail((double)p, false); }
WSTW_INLINE float erfinvf(float x) {
  const double tail = 0.5 - 0.5 * __builtin_fabs((double)x);
  const float y = (float)(-0.70710678118654752440 * wstw_normal_quantile(tail));
  return __builtin_copysignf(1.f, x) * (x == 0.f ? 0.f : y);
}
WSTW_INLINE float erfcinvf(float x) {
  return (float)(-0.70710678118654752440 * wstw_normal_quantile(0.5 * (double)x));
}
WSTW_INLINE float erfcxf(float x) {
  const double d = x, z = 1.0 / (d * d);
  const double far = 0.56418958354775628695 / d * (1.0 - 0.5 * z * (1.0 - 1.5 * z * (1.0 - 2.5 * z)));
  return (float)(d > 25.0 ? far : __builtin_exp(d * d) * __builtin_erfc(d));
}
WSTW_INLINE float wstw_sinpi(float x, double quarter_turns) {
  const double turns = (double)x * 0.5, part = turns - __builtin_floor(turns);  // exact
  const double n = __builtin_rint(part * 4.0), r = (part * 4.0 - n) * 1.57079632679489661923, z = r * r;
  const double q = n + quarter_turns, at = q - 4.0 * __builtin_floor(q * 0.25);
  const double s =
      r + r * z * (-1.66666666666e-1 + z * (8.33333332e-3 + z * (-1.98412558e-4 + z * 2.7522e-6)));
  const double c =
      1.0 - 0.5 * z + z * z * (4.16666666e-2 + z * (-1.38888882e-3 + z * (2.4800859e-5 - z * 2.7238e-7)));
  const double v = (at == 1.0 || at == 3.0) ? c : s;
  return (float)(at >= 2.0 ? -v : v);
}
WSTW_INLINE float sinpif(float x) { return wstw_sinpi(x, 0.0); }
WSTW_INLINE float cospif(float x) { return wstw_sinpi(x, 1.0); }
WSTW_INLINE void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}
WSTW_INLINE float norm3df(float a, float b, float c) {
  return (float)__builtin_sqrt((double)a * a + (double)b * b + (double)c * c);
}
WSTW_INLINE float norm4df(float a, float b, float c, float d) {
  return (float)__builtin_sqrt((double)a * a + (double)b * b + (double)c * c + (double)d * d);
}
WSTW_INLINE float rnorm3df(float a, float b, float c) { return 1.f / norm3df(a, b, c); }
WSTW_INLINE float rnorm4df(float a, float b, float c, float d) { return 1.f / norm4df(a, b, c, d); }
WSTW_INLINE double norm3d(double a, double b, double c) { return __builtin_sqrt(a * a + b * b + c * c); }
WSTW_INLINE double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
WSTW_INLINE double normcdfinv(double p) { return wstw_normal_quantile(p); }
WSTW_INLINE int ilogbf(float x) {
  int e;
  __builtin_frexpf(x, &e);
  return x == 0.f ? INT_MIN : x != x ? INT_MIN : __builtin_fabsf(x) == INFINITY ? INT_MAX : e - 1;
}
WSTW_INLINE float logbf(float x) {
  const float a = __builtin_fabsf(x);
  return x == 0.f ? -INFINITY : !(a < INFINITY) ? a : (float)ilogbf(x);
}
WSTW_INLINE float scalbnf(float x, int e) { return __builtin_ldexpf(x, e); }
WSTW_INLINE float scalblnf(float x, long e) {
  return __builtin_ldexpf(x, e > 1000 ? 1000 : e < -1000 ? -1000 : (int)e);
}
WSTW_INLINE float nextafterf(float x, float to) {
  const int bits = __float_as_int(x);
  const float next = __int_as_float((x < to) == (bits >= 0) ? bits + 1 : bits - 1);
  const float from_zero = __builtin_copysignf(__FLT_DENORM_MIN__, to);
  return x != x || to != to ? x + to : x == to ? to : x == 0.f ? from_zero : next;
}
WSTW_INLINE long long __mul64hi(long long a, long long b) { return (long long)(((__int128)a * b) >> 64); }
WSTW_INLINE int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
WSTW_INLINE int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
WSTW_INLINE unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b) >> 1); }
WSTW_INLINE unsigned __urhadd(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a + b + 1) >> 1);
}
WSTW_INLINE unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
WSTW_INLINE unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((((unsigned long long)hi << 32) | lo) << (s < 32u ? s : 32u)) >> 32);
}
WSTW_INLINE unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)((((unsigned long long)hi << 32) | lo) >> (s < 32u ? s : 32u));
}
#define WSTW_DP2A(T, A, byte)                                              \
  WSTW_INLINE T __dp2a_lo(T a, T b, T c) {                                 \
    return c + (T)(A)a * (T)(byte)b + (T)(A)(a >> 16) * (T)(byte)(b >> 8); \
  }                                                                        \
  WSTW_INLINE T __dp2a_hi(T a, T b, T c) { return __dp2a_lo(a, b >> 16, c); }
WSTW_DP2A(int, short, signed char)
WSTW_DP2A(unsigned, unsigned short, unsigned char)
#undef WSTW_DP2A
// Of each lane of `bits` bits: what `f` makes of the two.
template <class T, class F>
WSTW_INLINE unsigned wstw_lanes(unsigned a, unsigned b, F f) {
  constexpr int bits = 8 * (int)sizeof(T);
  constexpr unsigned mask = (1u << bits) - 1u;
  unsigned out = 0;
  for (int i = 0; i < 32; i += bits) out |= ((unsigned)f((int)(T)(a >> i), (int)(T)(b >> i)) & mask) << i;
  return out;
}
#define WSTW_SIMD(name, T, e)                                   \
  WSTW_INLINE unsigned name(unsigned a, unsigned b) {           \
    return wstw_lanes<T>(a, b, [](int x, int y) { return e; }); \
  }
#define WSTW_SIMD_OF(n, S, U)                         \
  WSTW_SIMD(__vadd##n, U, x + y)                      \
  WSTW_SIMD(__vsub##n, U, x - y)                      \
  WSTW_SIMD(__vabsdiffs##n, S, x > y ? x - y : y - x) \
  WSTW_SIMD(__vabsdiffu##n, U, x > y ? x - y : y - x) \
  WSTW_SIMD(__vmaxs##n, S, x > y ? x : y)             \
  WSTW_SIMD(__vmaxu##n, U, x > y ? x : y)             \
  WSTW_SIMD(__vmins##n, S, x < y ? x : y)             \
  WSTW_SIMD(__vminu##n, U, x < y ? x : y)             \
  WSTW_SIMD(__vcmpeq##n, U, x == y ? -1 : 0)          \
  WSTW_SIMD(__vcmpne##n, U, x != y ? -1 : 0)
WSTW_SIMD_OF(4, signed char, unsigned char)
WSTW_SIMD_OF(2, short, unsigned short)
#undef WSTW_SIMD_OF
#undef WSTW_SIMD
#endif

// ---- half, bfloat16: stored in 16 bits, arithmetic in float
// -------------------------------------------------------------
#if defined(WSTW_USES_HALF) || defined(WSTW_USES_BFLOAT16)
#ifdef WSTW_USES_HALF
struct __half_raw {
  unsigned short x;
};
struct __half {
  _Float16 v;
  __half() = default;
  WSTW_MEMBER __half(float x) : v((_Float16)x) {}
  WSTW_MEMBER __half(double x) : v((_Float16)x) {}
  WSTW_MEMBER __half(int x) : v((_Float16)(float)x) {}
  WSTW_MEMBER __half(unsigned x) : v((_Float16)(float)x) {}
  WSTW_MEMBER __half(long x) : v((_Float16)(float)x) {}
  WSTW_MEMBER __half(unsigned long x) : v((_Float16)(float)x) {}
  WSTW_MEMBER __half(long long x) : v((_Float16)(float)x) {}
  WSTW_MEMBER __half(unsigned long long x) : v((_Float16)(float)x) {}
  WSTW_MEMBER __half(__half_raw r) : v(__builtin_bit_cast(_Float16, r.x)) {}
  WSTW_MEMBER operator float() const { return (float)v; }
  WSTW_MEMBER operator __half_raw() const { return {__builtin_bit_cast(unsigned short, v)}; }
};
typedef __half half;
typedef __half __nv_half;
typedef __half nv_half;
struct alignas(4) __half2_raw {
  unsigned short x, y;
};
struct alignas(4) __half2 {
  __half x, y;
  __half2() = default;
  WSTW_MEMBER __half2(const __half& a, const __half& b) : x(a), y(b) {}
  WSTW_MEMBER __half2(const __half2_raw& r) : x(__half_raw{r.x}), y(__half_raw{r.y}) {}
  WSTW_MEMBER operator __half2_raw() const { return {__half_raw(x).x, __half_raw(y).x}; }
};
typedef __half2 half2;
typedef __half2 nv_half2;
#endif
#ifdef WSTW_USES_BFLOAT16
struct __nv_bfloat16_raw {
  unsigned short x;
};
// A double as a float whose last bit is set where it is not exact: what rounds it further, rounds once.
WSTW_INLINE float wstw_odd(double x) {
  const float f = (float)x;
  const int bits = __float_as_int(f);
  const bool exact = !((double)f < x) && !((double)f > x);
  return exact || (bits & 1) ? f : __int_as_float(((double)f < x) == (bits >= 0) ? bits + 1 : bits - 1);
}
struct __nv_bfloat16 {
  unsigned short v;
  __nv_bfloat16() = default;
  WSTW_MEMBER __nv_bfloat16(float x) {
    const unsigned bits = __float_as_uint(x);
    v = (bits & 0x7fffffffu) > 0x7f800000u ? (unsigned short)((bits >> 16) | 64u)
                                           : (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
  WSTW_MEMBER __nv_bfloat16(double x) : __nv_bfloat16(wstw_odd(x)) {}
  WSTW_MEMBER __nv_bfloat16(int x) : __nv_bfloat16((double)x) {}
  WSTW_MEMBER __nv_bfloat16(unsigned x) : __nv_bfloat16((double)x) {}
  WSTW_MEMBER __nv_bfloat16(long x) : __nv_bfloat16((double)x) {}
  WSTW_MEMBER __nv_bfloat16(unsigned long x) : __nv_bfloat16((double)x) {}
  WSTW_MEMBER __nv_bfloat16(long long x) : __nv_bfloat16((double)x) {}
  WSTW_MEMBER __nv_bfloat16(unsigned long long x) : __nv_bfloat16((double)x) {}
  WSTW_MEMBER __nv_bfloat16(__nv_bfloat16_raw r) : v(r.x) {}
  WSTW_MEMBER operator float() const { return __uint_as_float((unsigned)v << 16); }
  WSTW_MEMBER operator __nv_bfloat16_raw() const { return {v}; }
};
typedef __nv_bfloat16 nv_bfloat16;
struct alignas(4) __nv_bfloat162_raw {
  unsigned short x, y;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162() = default;
  WSTW_MEMBER __nv_bfloat162(const __nv_bfloat16& a, const __nv_bfloat16& b) : x(a), y(b) {}
  WSTW_MEMBER __nv_bfloat162(const __nv_bfloat162_raw& r)
      : x(__nv_bfloat16_raw{r.x}), y(__nv_bfloat16_raw{r.y}) {}
  WSTW_MEMBER operator __nv_bfloat162_raw() const { return {x.v, y.v}; }
};
typedef __nv_bfloat162 nv_bfloat162;
#endif

// The one above (way 1), below (-1) or nearer to zero (0).
template <class T>
WSTW_INLINE T wstw_half_directed(double x, int way) {
  const T h(x);
  const double near = (double)(float)h;
  const unsigned short bits = __builtin_bit_cast(unsigned short, h.v);
  const bool up = way > 0 || (way == 0 && x < 0.0);
  const bool off = up ? near < x : near > x;
  T out;
  out.v = __builtin_bit_cast(decltype(out.v),
                             (unsigned short)(bits + (off ? (up == (bits >> 15 != 0) ? -1 : 1) : 0)));
  return out;
}
#define WSTW_HALF_OPS(T, T2)                                                                          \
  WSTW_INLINE T operator+(T a, T b) { return T((float)a + (float)b); }                                \
  WSTW_INLINE T operator-(T a, T b) { return T((float)a - (float)b); }                                \
  WSTW_INLINE T operator*(T a, T b) { return T((float)a * (float)b); }                                \
  WSTW_INLINE T operator/(T a, T b) { return T((float)a / (float)b); }                                \
  WSTW_INLINE T operator+(T a) { return a; }                                                          \
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
  WSTW_INLINE T __hneg(T a) { return -a; }                                                            \
  WSTW_INLINE T __habs(T a) { return T(fabsf((float)a)); }                                            \
  WSTW_INLINE bool __hisnan(T a) { return a != a; }                                                   \
  WSTW_INLINE int __hisinf(T a) { return (float)a == INFINITY ? 1 : (float)a == -INFINITY ? -1 : 0; } \
  WSTW_INLINE T2 operator+(T2 a) { return a; }                                                        \
  WSTW_INLINE T2 operator-(T2 a) { return {-a.x, -a.y}; }                                             \
  WSTW_INLINE T2 __hneg2(T2 a) { return {-a.x, -a.y}; }                                               \
  WSTW_INLINE T2 __habs2(T2 a) { return {__habs(a.x), __habs(a.y)}; }                                 \
  WSTW_INLINE T2 __hisnan2(T2 a) { return {T(a.x != a.x ? 1.f : 0.f), T(a.y != a.y ? 1.f : 0.f)}; }   \
  WSTW_ARITHMETIC(T, T2, add, +, add2)                                                                \
  WSTW_ARITHMETIC(T, T2, sub, -, sub2)                                                                \
  WSTW_ARITHMETIC(T, T2, mul, *, mul2)                                                                \
  WSTW_INLINE T __hdiv(T a, T b) { return a / b; }                                                    \
  WSTW_OPERATOR2(T2, /)                                                                               \
  WSTW_INLINE T2 __h2div(T2 a, T2 b) { return a / b; }                                                \
  WSTW_STEP(T, ++, a + T(1.f))                                                                        \
  WSTW_STEP(T, --, a - T(1.f))                                                                        \
  WSTW_STEP(T2, ++, a + T2(T(1.f), T(1.f)))                                                           \
  WSTW_STEP(T2, --, a - T2(T(1.f), T(1.f)))                                                           \
  WSTW_FUSED(T, T2, , )                                                                               \
  WSTW_FUSED(T, T2, _sat, __saturatef)                                                                \
  WSTW_FUSED(T, T2, _relu, wstw_relu)                                                                 \
  WSTW_EXTREME(T, T2, max, fmaxf)                                                                     \
  WSTW_EXTREME(T, T2, min, fminf)                                                                     \
  WSTW_COMPARE(T, T2, eq, ==, a == b, !(a < b || a > b))                                              \
  WSTW_COMPARE(T, T2, ne, !=, a < b || a > b, a != b)                                                 \
  WSTW_COMPARE(T, T2, lt, <, a < b, !(a >= b))                                                        \
  WSTW_COMPARE(T, T2, gt, >, a > b, !(a <= b))                                                        \
  WSTW_COMPARE(T, T2, le, <=, a <= b, !(a > b))                                                       \
  WSTW_COMPARE(T, T2, ge, >=, a >= b, !(a < b))                                                       \
  WSTW_OF_FLOAT(T, T2, exp, expf)                                                                     \
  WSTW_OF_FLOAT(T, T2, exp2, exp2f)                                                                   \
  WSTW_OF_FLOAT(T, T2, exp10, exp10f)                                                                 \
  WSTW_OF_FLOAT(T, T2, log, logf)                                                                     \
  WSTW_OF_FLOAT(T, T2, log2, log2f)                                                                   \
  WSTW_OF_FLOAT(T, T2, log10, log10f)                                                                 \
  WSTW_OF_FLOAT(T, T2, sqrt, sqrtf)                                                                   \
  WSTW_OF_FLOAT(T, T2, rsqrt, rsqrtf)                                                                 \
  WSTW_OF_FLOAT(T, T2, rcp, 1.f /)                                                                    \
  WSTW_OF_FLOAT(T, T2, sin, sinf)                                                                     \
  WSTW_OF_FLOAT(T, T2, cos, cosf)                                                                     \
  WSTW_OF_FLOAT(T, T2, tanh, tanhf)                                                                   \
  WSTW_OF_FLOAT(T, T2, tanh_approx, tanhf)                                                            \
  WSTW_OF_FLOAT(T, T2, floor, floorf)                                                                 \
  WSTW_OF_FLOAT(T, T2, ceil, ceilf)                                                                   \
  WSTW_OF_FLOAT(T, T2, rint, rintf)                                                                   \
  WSTW_OF_FLOAT(T, T2, trunc, truncf)                                                                 \
  WSTW_INLINE T2 __lowhigh2highlow(T2 v) { return {v.y, v.x}; }                                       \
  WSTW_INLINE float __low2float(T2 v) { return (float)v.x; }                                          \
  WSTW_INLINE float __high2float(T2 v) { return (float)v.y; }
#define WSTW_STEP(T, op, next)                          \
  WSTW_INLINE T& operator op(T& a) { return a = next; } \
  WSTW_INLINE T operator op(T& a, int) {                \
    const T before = a;                                 \
    a = next;                                           \
    return before;                                      \
  }
#define WSTW_OPERATOR2(T2, op)                                                \
  WSTW_INLINE T2 operator op(T2 a, T2 b) { return {a.x op b.x, a.y op b.y}; } \
  WSTW_INLINE T2& operator op##=(T2& a, T2 b) { return a = a op b; }
#define WSTW_ARITHMETIC(T, T2, name, op, name2)                                            \
  WSTW_OPERATOR2(T2, op)                                                                   \
  WSTW_INLINE T __h##name(T a, T b) { return a op b; }                                     \
  WSTW_INLINE T __h##name##_rn(T a, T b) { return a op b; }                                \
  WSTW_INLINE T __h##name##_sat(T a, T b) { return T(__saturatef((float)a op(float) b)); } \
  WSTW_INLINE T2 __h##name2(T2 a, T2 b) { return a op b; }                                 \
  WSTW_INLINE T2 __h##name2##_rn(T2 a, T2 b) { return a op b; }                            \
  WSTW_INLINE T2 __h##name2##_sat(T2 a, T2 b) {                                            \
    return {__h##name##_sat(a.x, b.x), __h##name##_sat(a.y, b.y)};                         \
  }
WSTW_INLINE float wstw_relu(float v) { return v < 0.f ? 0.f : v; }
#define WSTW_FUSED(T, T2, end, f)                                                               \
  WSTW_INLINE T __hfma##end(T a, T b, T c) { return T(f(fmaf((float)a, (float)b, (float)c))); } \
  WSTW_INLINE T2 __hfma2##end(T2 a, T2 b, T2 c) {                                               \
    return {__hfma##end(a.x, b.x, c.x), __hfma##end(a.y, b.y, c.y)};                            \
  }
#define WSTW_EXTREME(T, T2, name, f)                                                              \
  WSTW_INLINE T __h##name(T a, T b) { return T(f((float)a, (float)b)); }                          \
  WSTW_INLINE T __h##name##_nan(T a, T b) { return a != a || b != b ? T(NAN) : __h##name(a, b); } \
  WSTW_INLINE T2 __h##name##2(T2 a, T2 b) { return {__h##name(a.x, b.x), __h##name(a.y, b.y)}; }  \
  WSTW_INLINE T2 __h##name##2_nan(T2 a, T2 b) {                                                   \
    return {__h##name##_nan(a.x, b.x), __h##name##_nan(a.y, b.y)};                                \
  }
#define WSTW_COMPARE(T, T2, n, op, ordered, unordered)                      \
  WSTW_INLINE bool __h##n(T x, T y) {                                       \
    const float a = x.operator float(), b = y.operator float();             \
    return ordered;                                                         \
  }                                                                         \
  WSTW_INLINE bool __h##n##u(T x, T y) {                                    \
    const float a = x.operator float(), b = y.operator float();             \
    return unordered;                                                       \
  }                                                                         \
  WSTW_COMPARE2(T, T2, __h##n, __h##n##2, __h##n##2_mask, __hb##n##2)       \
  WSTW_COMPARE2(T, T2, __h##n##u, __h##n##u2, __h##n##u2_mask, __hb##n##u2) \
  WSTW_INLINE bool operator op(T2 a, T2 b) { return (float)a.x op(float) b.x && (float)a.y op(float) b.y; }
#ifdef WSTW_USES_RARER
#define WSTW_COMPARE2(T, T2, f, each, mask, both)                                                      \
  WSTW_INLINE T2 each(T2 a, T2 b) { return {T(f(a.x, b.x) ? 1.f : 0.f), T(f(a.y, b.y) ? 1.f : 0.f)}; } \
  WSTW_INLINE unsigned mask(T2 a, T2 b) {                                                              \
    return (f(a.x, b.x) ? 0xffffu : 0u) | (f(a.y, b.y) ? 0xffff0000u : 0u);                            \
  }                                                                                                    \
  WSTW_INLINE bool both(T2 a, T2 b) { return f(a.x, b.x) && f(a.y, b.y); }
#else
#define WSTW_COMPARE2(T, T2, f, each, mask, both)
#endif
#define WSTW_OF_FLOAT(T, T2, name, f)                   \
  WSTW_INLINE T h##name(T a) { return T(f((float)a)); } \
  WSTW_INLINE T2 h2##name(T2 a) { return {h##name(a.x), h##name(a.y)}; }
#ifdef WSTW_USES_HALF
WSTW_HALF_OPS(__half, __half2)
#endif
#ifdef WSTW_USES_BFLOAT16
WSTW_HALF_OPS(__nv_bfloat16, __nv_bfloat162)
#endif
#undef WSTW_HALF_OPS
#undef WSTW_STEP
#undef WSTW_OPERATOR2
#undef WSTW_ARITHMETIC
#undef WSTW_FUSED
#undef WSTW_EXTREME
#undef WSTW_COMPARE
#undef WSTW_COMPARE2
#undef WSTW_OF_FLOAT
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
#ifdef WSTW_USES_HALF
WSTW_MIXED(__half, float)
WSTW_MIXED(float, __half)
WSTW_MIXED(__half, int)
WSTW_MIXED(int, __half)
#endif
#ifdef WSTW_USES_BFLOAT16
WSTW_MIXED(__nv_bfloat16, float)
WSTW_MIXED(float, __nv_bfloat16)
WSTW_MIXED(__nv_bfloat16, int)
WSTW_MIXED(int, __nv_bfloat16)
#endif
#undef WSTW_MIXED
#define WSTW_CONVERSIONS(T, T2, half)                                                                    \
  WSTW_INLINE float __##half##2float(T v) { return (float)v; }                                           \
  WSTW_INLINE T __float2##half(float v) { return T(v); }                                                 \
  WSTW_INLINE T __float2##half##_rn(float v) { return T(v); }                                            \
  WSTW_INLINE T __double2##half(double v) { return T(v); }                                               \
  WSTW_INLINE T2 __floats2##half##2_rn(float a, float b) { return {T(a), T(b)}; }                        \
  WSTW_INLINE T2 __float2##half##2_rn(float a) { return {T(a), T(a)}; }                                  \
  WSTW_INLINE T2 __float22##half##2_rn(float2 a) { return {T(a.x), T(a.y)}; }                            \
  WSTW_INLINE float2 __##half##22float2(T2 v) { return {(float)v.x, (float)v.y}; }                       \
  WSTW_INLINE T2 __halves2##half##2(T a, T b) { return {a, b}; }                                         \
  WSTW_INLINE T2 __##half##2##half##2(T a) { return {a, a}; }                                            \
  WSTW_INLINE T __low2##half(T2 v) { return v.x; }                                                       \
  WSTW_INLINE T __high2##half(T2 v) { return v.y; }                                                      \
  WSTW_INLINE T2 __low2##half##2(T2 v) { return {v.x, v.x}; }                                            \
  WSTW_INLINE T2 __high2##half##2(T2 v) { return {v.y, v.y}; }                                           \
  WSTW_INLINE T2 __lows2##half##2(T2 a, T2 b) { return {a.x, b.x}; }                                     \
  WSTW_INLINE T2 __highs2##half##2(T2 a, T2 b) { return {a.y, b.y}; }                                    \
  WSTW_INLINE short __##half##_as_short(T v) { return __builtin_bit_cast(short, v); }                    \
  WSTW_INLINE unsigned short __##half##_as_ushort(T v) { return __builtin_bit_cast(unsigned short, v); } \
  WSTW_INLINE T __short_as_##half(short v) { return __builtin_bit_cast(T, v); }                          \
  WSTW_INLINE T __ushort_as_##half(unsigned short v) { return __builtin_bit_cast(T, v); }
#ifdef WSTW_USES_RARER
#define WSTW_CONVERT(T, half, number, N)                                                               \
  WSTW_INLINE N __##half##2##number##_rn(T v) { return wstw_saturate<N>(__builtin_rintf((float)v)); }  \
  WSTW_INLINE N __##half##2##number##_rz(T v) { return wstw_saturate<N>(__builtin_truncf((float)v)); } \
  WSTW_INLINE N __##half##2##number##_rd(T v) { return wstw_saturate<N>(__builtin_floorf((float)v)); } \
  WSTW_INLINE N __##half##2##number##_ru(T v) { return wstw_saturate<N>(__builtin_ceilf((float)v)); }  \
  WSTW_INLINE T __##number##2##half##_rn(N v) { return T(v); }                                         \
  WSTW_INLINE T __##number##2##half##_rz(N v) { return wstw_half_directed<T>((double)v, 0); }          \
  WSTW_INLINE T __##number##2##half##_rd(N v) { return wstw_half_directed<T>((double)v, -1); }         \
  WSTW_INLINE T __##number##2##half##_ru(N v) { return wstw_half_directed<T>((double)v, 1); }
#define WSTW_RARER_CONVERSIONS(T, T2, half)                                                                \
  WSTW_CONVERT(T, half, int, int)                                                                          \
  WSTW_CONVERT(T, half, uint, unsigned)                                                                    \
  WSTW_CONVERT(T, half, short, short)                                                                      \
  WSTW_CONVERT(T, half, ushort, unsigned short)                                                            \
  WSTW_CONVERT(T, half, ll, long long)                                                                     \
  WSTW_CONVERT(T, half, ull, unsigned long long)                                                           \
  WSTW_INLINE signed char __##half##2char_rz(T v) { return wstw_saturate<signed char>(truncf((float)v)); } \
  WSTW_INLINE unsigned char __##half##2uchar_rz(T v) {                                                     \
    return wstw_saturate<unsigned char>(truncf((float)v));                                                 \
  }                                                                                                        \
  WSTW_INLINE T __float2##half##_rz(float v) { return wstw_half_directed<T>((double)v, 0); }               \
  WSTW_INLINE T __float2##half##_rd(float v) { return wstw_half_directed<T>((double)v, -1); }              \
  WSTW_INLINE T __float2##half##_ru(float v) { return wstw_half_directed<T>((double)v, 1); }
#else
#define WSTW_RARER_CONVERSIONS(T, T2, half)
#endif
#ifdef WSTW_USES_HALF
WSTW_CONVERSIONS(__half, __half2, half)
WSTW_RARER_CONVERSIONS(__half, __half2, half)
WSTW_INLINE __half2 make_half2(__half a, __half b) { return {a, b}; }
#endif
#ifdef WSTW_USES_BFLOAT16
WSTW_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16)
WSTW_RARER_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16)
WSTW_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
#endif
#undef WSTW_CONVERSIONS
#undef WSTW_RARER_CONVERSIONS
#undef WSTW_CONVERT
#endif

// ---- atomics
// -----------------------------------------------------------------------------------------------------------
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
#ifdef WSTW_USES_HALF
template <>
struct wstw_word_of<__half> {
  typedef unsigned short type;
};
template <>
struct wstw_word_of<__half2> {
  typedef unsigned type;
};
#endif
#ifdef WSTW_USES_BFLOAT16
template <>
struct wstw_word_of<__nv_bfloat16> {
  typedef unsigned short type;
};
template <>
struct wstw_word_of<__nv_bfloat162> {
  typedef unsigned type;
};
#endif
template <class T, class F>
WSTW_NOT_CHECKED T wstw_update(T* p, F next) {
  typedef typename wstw_word_of<T>::type W;
  W* const word = (W*)p;
  WSTW_ATOMIC_ACCESS(p);
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
WSTW_NOT_CHECKED T wstw_update_int(T* p, F next) {
  WSTW_ATOMIC_ACCESS(p);
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &old, next(old), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
#define WSTW_ATOMIC_INT(T)                                                                   \
  WSTW_NOT_CHECKED T atomicAdd(T* p, T v) {                                                  \
    WSTW_ATOMIC_ACCESS(p);                                                                   \
    return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);                                       \
  }                                                                                          \
  WSTW_NOT_CHECKED T atomicSub(T* p, T v) {                                                  \
    WSTW_ATOMIC_ACCESS(p);                                                                   \
    return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED);                                       \
  }                                                                                          \
  WSTW_NOT_CHECKED T atomicAnd(T* p, T v) {                                                  \
    WSTW_ATOMIC_ACCESS(p);                                                                   \
    return __atomic_fetch_and(p, v, __ATOMIC_RELAXED);                                       \
  }                                                                                          \
  WSTW_NOT_CHECKED T atomicOr(T* p, T v) {                                                   \
    WSTW_ATOMIC_ACCESS(p);                                                                   \
    return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);                                        \
  }                                                                                          \
  WSTW_NOT_CHECKED T atomicXor(T* p, T v) {                                                  \
    WSTW_ATOMIC_ACCESS(p);                                                                   \
    return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED);                                       \
  }                                                                                          \
  WSTW_NOT_CHECKED T atomicExch(T* p, T v) {                                                 \
    WSTW_ATOMIC_ACCESS(p);                                                                   \
    return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL);                                      \
  }                                                                                          \
  WSTW_INLINE T atomicMax(T* p, T v) {                                                       \
    return wstw_update_int(p, [=](T o) { return o < v ? v : o; });                           \
  }                                                                                          \
  WSTW_INLINE T atomicMin(T* p, T v) {                                                       \
    return wstw_update_int(p, [=](T o) { return v < o ? v : o; });                           \
  }                                                                                          \
  WSTW_NOT_CHECKED T atomicCAS(T* p, T expected, T v) {                                      \
    WSTW_ATOMIC_ACCESS(p);                                                                   \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); \
    return expected;                                                                         \
  }
WSTW_ATOMIC_INT(int)
WSTW_ATOMIC_INT(unsigned)
WSTW_ATOMIC_INT(long long)
WSTW_ATOMIC_INT(unsigned long long)
#undef WSTW_ATOMIC_INT
WSTW_NOT_CHECKED unsigned short atomicCAS(unsigned short* p, unsigned short expected, unsigned short v) {
  WSTW_ATOMIC_ACCESS(p);
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
#ifdef WSTW_USES_HALF
WSTW_INLINE __half atomicAdd(__half* p, __half v) {
  return wstw_update(p, [=](__half o) { return o + v; });
}
WSTW_INLINE __half2 atomicAdd(__half2* p, __half2 v) {
  return wstw_update(p, [=](__half2 o) { return o + v; });
}
#endif
#ifdef WSTW_USES_BFLOAT16
WSTW_INLINE __nv_bfloat16 atomicAdd(__nv_bfloat16* p, __nv_bfloat16 v) {
  return wstw_update(p, [=](__nv_bfloat16 o) { return o + v; });
}
WSTW_INLINE __nv_bfloat162 atomicAdd(__nv_bfloat162* p, __nv_bfloat162 v) {
  return wstw_update(p, [=](__nv_bfloat162 o) { return o + v; });
}
#endif
WSTW_INLINE float atomicExch(float* p, float v) {
  return wstw_update(p, [=](float) { return v; });
}
#define atomicAdd_block atomicAdd
#define atomicAdd_system atomicAdd
#define atomicSub_block atomicSub
#define atomicSub_system atomicSub
#define atomicExch_block atomicExch
#define atomicExch_system atomicExch
#define atomicMin_block atomicMin
#define atomicMin_system atomicMin
#define atomicMax_block atomicMax
#define atomicMax_system atomicMax
#define atomicInc_block atomicInc
#define atomicInc_system atomicInc
#define atomicDec_block atomicDec
#define atomicDec_system atomicDec
#define atomicCAS_block atomicCAS
#define atomicCAS_system atomicCAS
#define atomicAnd_block atomicAnd
#define atomicAnd_system atomicAnd
#define atomicOr_block atomicOr
#define atomicOr_system atomicOr
#define atomicXor_block atomicXor
#define atomicXor_system atomicXor

// What <cstddef>, <cstdint>, <cmath> and <cstring> have in std::.
namespace std {
typedef decltype(nullptr) nullptr_t;
using ::abs;
using ::acos;
using ::asin;
using ::atan;
using ::atan2;
using ::cbrt;
using ::ceil;
using ::ceilf;
using ::copysign;
using ::copysignf;
using ::cos;
using ::cosf;
using ::cosh;
using ::erf;
using ::erfc;
using ::erfcf;
using ::erff;
using ::exp;
using ::exp2;
using ::exp2f;
using ::expf;
using ::expm1;
using ::expm1f;
using ::fabs;
using ::fabsf;
using ::fdim;
using ::floor;
using ::floorf;
using ::fma;
using ::fmaf;
using ::fmax;
using ::fmaxf;
using ::fmin;
using ::fminf;
using ::fmod;
using ::fmodf;
using ::frexp;
using ::hypot;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::ldexp;
using ::llrint;
using ::llround;
using ::log;
using ::log10;
using ::log10f;
using ::log1p;
using ::log1pf;
using ::log2;
using ::log2f;
using ::logf;
using ::lrint;
using ::lround;
using ::memcmp;
using ::memcpy;
using ::memmove;
using ::memset;
using ::modf;
using ::pow;
using ::powf;
using ::ptrdiff_t;
using ::remainder;
using ::rint;
using ::rintf;
using ::round;
using ::roundf;
using ::signbit;
using ::sin;
using ::sinf;
using ::sinh;
using ::size_t;
using ::sqrt;
using ::sqrtf;
using ::tan;
using ::tanf;
using ::tanh;
using ::tanhf;
using ::trunc;
using ::truncf;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;
}  // namespace std

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
  dim3 dim_blocks() const { return wstw_u3(wstw_c.grid_dim); }
  dim3 block_index() const { return wstw_u3(wstw_c.block_idx); }

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
  template <class T>
  unsigned match_any(T v) const {
    return wstw_match_any(wstw_c, wstw_mask(), v) >> wstw_first();
  }
  template <class T>
  unsigned match_all(T v, int& same) const {
    const unsigned all = wstw_mask() >> wstw_first();
    same = match_any(v) == all;
    return same ? all : 0u;
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
// A group whose size is known when it runs: a block, or a tile of a power of two of its threads.
class thread_group {
 public:
  thread_group(const thread_block& b) : wstw_c(b.wstw_c), wstw_tile(0) {}
  template <unsigned N, class P>
  thread_group(const thread_block_tile<N, P>& t) : wstw_c(t.wstw_c), wstw_tile(N) {}
  thread_group(const wstw_ctx& c, unsigned tile) : wstw_c(c), wstw_tile(tile) {}
  void sync() const {
    if (wstw_tile == 0)
      wstw_barrier(wstw_c, kWstwSync, 0);
    else
      wstw_warp(wstw_c, kWstwWarpSync, (~0u >> (32 - wstw_tile)) << (wstw_c.rank & 31u & ~(wstw_tile - 1)), 0,
                0);
  }
  unsigned thread_rank() const { return wstw_tile == 0 ? wstw_c.rank : wstw_c.rank & (wstw_tile - 1); }
  unsigned size() const { return wstw_tile == 0 ? thread_block(wstw_c).size() : wstw_tile; }
  unsigned num_threads() const { return size(); }
  thread_group(const thread_group& o) : wstw_c(o.wstw_c), wstw_tile(o.wstw_tile) {}
  thread_group& operator=(const thread_group& o) = delete;
  wstw_ctx wstw_c;
  unsigned wstw_tile;
};
WSTW_INLINE thread_group tiled_partition(const thread_group& g, unsigned n) {
  if (n == 0 || n > 32 || (n & (n - 1)) != 0)
    g.wstw_c.block->runtime->fail(kWstwUnsupported, "the CPU twin has tiles of 1, 2, 4, 8, 16 or 32 threads");
  return thread_group(g.wstw_c, n);
}
template <class G, class F, class... A>
WSTW_INLINE void invoke_one(const G& g, F&& f, A&&... a) {
  if (g.thread_rank() == 0) f(static_cast<A&&>(a)...);
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
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
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
WSTW_KIND(char, kWstwInteger)
WSTW_KIND(signed char, kWstwInteger)
WSTW_KIND(unsigned char, kWstwInteger)
WSTW_KIND(short, kWstwInteger)
WSTW_KIND(unsigned short, kWstwInteger)
WSTW_KIND(int, kWstwInteger)
WSTW_KIND(unsigned, kWstwInteger)
WSTW_KIND(long, kWstwInteger)
WSTW_KIND(unsigned long, kWstwInteger)
WSTW_KIND(long long, kWstwInteger)
WSTW_KIND(unsigned long long, kWstwInteger)
WSTW_KIND(float, kWstwFloat)
WSTW_KIND(double, kWstwFloat)
#ifdef WSTW_USES_HALF
WSTW_KIND(__half, kWstwFloat)
#endif
#ifdef WSTW_USES_BFLOAT16
WSTW_KIND(__nv_bfloat16, kWstwFloat)
#endif
#undef WSTW_KIND

template <unsigned long... I>
struct wstw_seq {};
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

// The context of a kernel with `__launch_bounds__(N)`: the same, with the bound in its type.
template <unsigned N>
struct wstw_bounded : wstw_ctx {};
template <class C>
struct wstw_bound {
  WSTW_MEMBER static void check(const wstw_block*) {}
};
template <unsigned N>
struct wstw_bound<wstw_bounded<N>> {
  WSTW_MEMBER static void check(const wstw_block* block) {
    const wstw_uint3 d = block->block_dim;
    if (N != 0 && __builtin_expect(d.x * d.y * d.z > N, 0))
      block->runtime->fail(kWstwLaunch,
                           "the plan has more threads a block than the kernel's __launch_bounds__");
  }
};

enum wstw_form { kWstwEachThread, kWstwGuarded };
template <auto F, wstw_form Form>
struct wstw_launch;
template <class C, class... P, void (*F)(const C&, P...), wstw_form Form>
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
      unsigned row = 0;
      for (unsigned z = 0; z < bd.z; ++z)
        for (unsigned y = 0; y < bd.y; ++y, row += bd.x) {
          unsigned begin = 0, end = bd.x;
          if constexpr (Form == kWstwGuarded) {
            const auto passes = [&](unsigned x) {
              bool all = true;
              const wstw_ctx c = {{x, y, z}, bi, bd, gd, block, row + x, 2, &all};
              F(static_cast<const C&>(c), p...);
              return all;
            };
            wstw_passing(bd.x, passes, &begin, &end);
            WSTW_KNOWN(end <= 1024u);
          }
#pragma GCC ivdep
          for (unsigned x = begin; x < end; ++x) {
            const wstw_ctx c = {{x, y, z}, bi, bd, gd, block, row + x, Form == kWstwGuarded ? 1u : 0u,
                                nullptr};
            F(static_cast<const C&>(c), p...);
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
    wstw_bound<C>::check(block);
    spread(block, first, last, args, wstw_seq<__integer_pack(sizeof...(P))...>{});
  }
  template <unsigned long... I>
  WSTW_MEMBER static void spread_one(const wstw_ctx* c, void* const* args, wstw_seq<I...>) {
    F(static_cast<const C&>(*c), wstw_argument<typename wstw_no_cv<P>::type>::load(args[I])...);
  }
  static void thread(const wstw_ctx* c, void* const* args) {
    wstw_bound<C>::check(c->block);
    spread_one(c, args, wstw_seq<__integer_pack(sizeof...(P))...>{});
  }
};

// Kernels of the harness itself, made by NVRTC once for each GPU type, behind the text of
// answers/value_elements.h. Struct layouts: there, in kernels.h and kernels.cc.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
using namespace warpsmith::measure;

__device__ u64 now_ns() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

// Keeps the stream busy while the host enqueues what comes behind: until the host writes `number` there, at
// most for `most_ns`.
extern "C" __global__ void ws_hold(const volatile u32* released, u32 number, u64 most_ns) {
  const u64 begin = now_ns();
  while (*released != number && now_ns() - begin < most_ns) __nanosleep(100);
}

// A value as an element of a tensor: reals come to integers by way of 64 bits, integers to narrow floats by
// way of float.
template <typename T>
struct As {  // a float
  static __device__ T element(float real) { return T(real); }
  static __device__ T element(i64 integer) { return T(static_cast<float>(integer)); }
};
template <typename T>
struct AsInteger {
  static __device__ T element(float real) { return static_cast<T>(static_cast<i64>(real)); }
  static __device__ T element(i64 integer) { return static_cast<T>(integer); }
};
template <>
struct As<double> {
  static __device__ double element(float real) { return real; }
  static __device__ double element(i64 integer) { return static_cast<double>(integer); }
};
template <>
struct As<bool> {
  static __device__ bool element(float real) { return real != 0.f; }
  static __device__ bool element(i64 integer) { return integer != 0; }
};
template <>
struct As<i64> : AsInteger<i64> {};
template <>
struct As<int> : AsInteger<int> {};
template <>
struct As<short> : AsInteger<short> {};
template <>
struct As<signed char> : AsInteger<signed char> {};
template <>
struct As<unsigned char> : AsInteger<unsigned char> {};

template <typename T, typename Make>  // make(place in pool a, place in pool b, mask)
__device__ void make_elements(const GpuDraw& d, Make make) {
  T* out = reinterpret_cast<T*>(d.out);
  for_elements_of(static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x,
                  static_cast<u64>(gridDim.x) * blockDim.x, d.key, d.count,
                  [&](u64 i, u32 a, u32 b, u32 mask) { out[i] = As<T>::element(make(a, b, mask)); });
}

template <typename T>
__device__ void make_tensor(const GpuDraw& d) {
  const float *real_a = reinterpret_cast<const float*>(d.pool_a),
              *real_b = reinterpret_cast<const float*>(d.pool_b);
  const auto bits = [&](u32 a, u32 b, u32 mask) {
    return bits_of(__ldg(reinterpret_cast<const u32*>(d.pool_a) + a),
                   __ldg(reinterpret_cast<const u32*>(d.pool_b) + b), mask);
  };
  switch (d.kind) {
    case 0:
      return make_elements<T>(d, [&](u32 a, u32 b, u32) {
        return normal_of(__ldg(real_a + a), __ldg(real_b + b), d.base, d.x_scale, d.y_scale);
      });
    case 1:
      return make_elements<T>(
          d, [&](u32 a, u32 b, u32 mask) { return uniform_of(bits(a, b, mask), d.base, d.x_scale); });
    case 2:
      return make_elements<T>(
          d, [&](u32 a, u32 b, u32 mask) { return integer_of(bits(a, b, mask), d.low, d.range); });
    case 3:
      return make_elements<T>(d, [&](u32 a, u32 b, u32 mask) {
        return static_cast<i64>(bernoulli_of(bits(a, b, mask), d.range));
      });
    case 4:
      return make_elements<T>(
          d, [&](u32 a, u32 b, u32 mask) { return step_of(bits(a, b, mask), d.base, d.x_scale, d.range); });
    case 5:
      return make_elements<T>(d, [&](u32, u32, u32) { return d.base; });
  }
}

// A row of blocks a draw. What is made, and by whom, is in answers/value_elements.h: the host makes the same
// values. One loop for each kind and type: asking for both at each element took longer than memory does.
extern "C" __global__ void ws_values(const __grid_constant__ GpuDraws list) {
  const GpuDraw& d = list.draws[blockIdx.y];
  switch (d.dtype) {  // task::Dtype in its order
    case 0:
      return make_tensor<double>(d);
    case 1:
      return make_tensor<float>(d);
    case 2:
      return make_tensor<__half>(d);
    case 3:
      return make_tensor<__nv_bfloat16>(d);
    case 4:
      return make_tensor<__nv_fp8_e4m3>(d);
    case 5:
      return make_tensor<__nv_fp8_e5m2>(d);
    case 6:
      return make_tensor<i64>(d);
    case 7:
      return make_tensor<int>(d);
    case 8:
      return make_tensor<short>(d);
    case 9:
      return make_tensor<signed char>(d);
    case 10:
      return make_tensor<unsigned char>(d);
    case 11:
      return make_tensor<bool>(d);
  }
}

struct Region {
  u64 address, bytes;
};

// A block a region: where one holds anything but the pattern, flag[0] becomes its number + 1.
extern "C" __global__ void ws_canaries(const Region* regions, unsigned char pattern, int* flag) {
  const Region r = regions[blockIdx.x];
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(r.address);
  for (u64 i = threadIdx.x; i < r.bytes; i += blockDim.x)
    if (bytes[i] != pattern) atomicMax(flag, static_cast<int>(blockIdx.x) + 1);
}

// The place that a thread of a warp looks at, of `count` elements: the last, and others as `key` says.
__device__ u64 place_to_look_at(u64 count, u64 key) {
  if (threadIdx.x == 0) return count - 1;
  u64 h = key + blockIdx.x * 0x9E3779B97F4A7C15ull + threadIdx.x * 0xD1B54A32D192ED03ull;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
  return (h ^ (h >> 31)) % count;
}

__device__ bool is_poison(const Region& region, u64 place, int size) {
  const unsigned char* element =
      reinterpret_cast<const unsigned char*>(region.address) + place * static_cast<u64>(size);
  for (int i = 0; i < size; ++i)
    if (element[i] != 0xFF) return false;
  return true;
}

// A warp an output: looks at 32 places of it, each an element of `size` bytes; where one is poisoned, all its
// bytes 0xFF, or is not, as is asked for, flag[0] becomes the least number + 1 of such an output, counted
// from `regions`.
extern "C" __global__ void ws_outputs(const Region* regions, int size, u64 key, int poisoned, int* flag) {
  const Region r = regions[blockIdx.x];
  const u64 count = r.bytes / static_cast<u64>(size);
  if (count == 0) return;
  if (is_poison(r, place_to_look_at(count, key), size) == (poisoned != 0))
    atomicMin(flag, static_cast<int>(blockIdx.x) + 1);
}

// Whether two stretches of memory differ: flag[0] becomes `number` + 1.
extern "C" __global__ void ws_differs(const unsigned char* a, const unsigned char* b, u64 bytes, int number,
                                      int* flag) {
  const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
  const u64 me = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  bool differs = false;
  const bool aligned = (reinterpret_cast<u64>(a) | reinterpret_cast<u64>(b)) % 16 == 0;
  const u64 vectors = aligned ? bytes / 16 : 0;
  for (u64 i = me; i < vectors; i += stride) {
    const uint4 x = reinterpret_cast<const uint4*>(a)[i], y = reinterpret_cast<const uint4*>(b)[i];
    differs = differs || x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w;
  }
  for (u64 i = vectors * 16 + me; i < bytes; i += stride) differs = differs || a[i] != b[i];
  if (differs) atomicMax(flag, number + 1);
}

// A block an SM: overwrites all the shared memory that it can have with NaNs.
extern "C" __global__ void ws_scrub(u32 words) {
  extern __shared__ u32 memory[];
  for (u32 i = threadIdx.x; i < words; i += blockDim.x)
    reinterpret_cast<volatile u32*>(memory)[i] = 0xFFFFFFFFu;
}

struct Regions {
  u64 count;
  Region regions[24];
};

// A row of blocks a region (at 16 bytes): all of its bytes become 0xFF.
extern "C" __global__ void ws_poison(const __grid_constant__ Regions list) {
  const Region r = list.regions[blockIdx.y];
  const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
  const u64 me = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x, vectors = r.bytes / 16;
  const uint4 ones = {0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu};
  for (u64 i = me; i < vectors; i += stride) reinterpret_cast<uint4*>(r.address)[i] = ones;
  for (u64 i = vectors * 16 + me; i < r.bytes; i += stride)
    reinterpret_cast<unsigned char*>(r.address)[i] = 0xFF;
}

// Every block looks at one word in each 64 KiB of the regions: address translations are there afterwards,
// data is not.
extern "C" __global__ void ws_touch(Regions list, u32* sink) {
  u32 sum = 0;
  for (u64 r = 0; r < list.count; ++r)
    for (u64 at = static_cast<u64>(threadIdx.x) * 65536; at < list.regions[r].bytes + 65535;
         at += blockDim.x * 65536ull) {
      const u64 inside = at < list.regions[r].bytes ? at : list.regions[r].bytes - 4;
      sum ^= *reinterpret_cast<const volatile u32*>((list.regions[r].address + inside) & ~3ull);
    }
  if (sum == 0x12345678u) *sink = sum;
}

// For the probe: how fast memory is. Every thread has eight vectors under way at once.
extern "C" __global__ void ws_read(const uint4* from, u64 count, u32* sink) {
  const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
  u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  u32 sum = 0;
  for (; i + 7 * stride < count; i += 8 * stride) {
    uint4 v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = __ldcs(from + i + static_cast<u64>(k) * stride);
#pragma unroll
    for (int k = 0; k < 8; ++k) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  }
  for (; i < count; i += stride) {
    const uint4 v = __ldcs(from + i);
    sum ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345678u) *sink = sum;
}
extern "C" __global__ void ws_copy(uint4* to, const uint4* from, u64 count) {
  const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
  u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * stride < count; i += 4 * stride) {
    uint4 v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = __ldcs(from + i + static_cast<u64>(k) * stride);
#pragma unroll
    for (int k = 0; k < 4; ++k) __stcs(to + i + static_cast<u64>(k) * stride, v[k]);
  }
  for (; i < count; i += stride) __stcs(to + i, __ldcs(from + i));
}
extern "C" __global__ void ws_nothing() {}

// Kernels of the harness itself, made by NVRTC once for each GPU type. Struct layouts: harness.h and
// harness.cc.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

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

template <typename T>
__device__ void store_real(void* out, u64 i, float value) {
  static_cast<T*>(out)[i] = T(value);
}
template <typename T>
__device__ void store_integer(void* out, u64 i, i64 value) {
  static_cast<T*>(out)[i] = static_cast<T>(value);
}

// dtype: task::Dtype in its order.
__device__ void store(u32 dtype, void* out, u64 i, float real, i64 integer, bool is_real) {
  if (!is_real) real = static_cast<float>(integer);
  if (is_real) integer = static_cast<i64>(real);
  switch (dtype) {
    case 0:
      static_cast<double*>(out)[i] = is_real ? real : static_cast<double>(integer);
      break;
    case 1:
      static_cast<float*>(out)[i] = real;
      break;
    case 2:
      static_cast<__half*>(out)[i] = __float2half_rn(real);
      break;
    case 3:
      static_cast<__nv_bfloat16*>(out)[i] = __float2bfloat16_rn(real);
      break;
    case 4:
      static_cast<__nv_fp8_e4m3*>(out)[i] = __nv_fp8_e4m3(real);
      break;
    case 5:
      static_cast<__nv_fp8_e5m2*>(out)[i] = __nv_fp8_e5m2(real);
      break;
    case 6:
      store_integer<i64>(out, i, integer);
      break;
    case 7:
      store_integer<int>(out, i, integer);
      break;
    case 8:
      store_integer<short>(out, i, integer);
      break;
    case 9:
      store_integer<signed char>(out, i, integer);
      break;
    case 10:
      store_integer<unsigned char>(out, i, integer);
      break;
    case 11:
      static_cast<unsigned char*>(out)[i] = is_real ? real != 0.f : integer != 0;
      break;
  }
}

struct Draw {
  u32 kind, first, second, shift;
  float base, x_scale, y_scale;
  u32 dtype;
  i64 low;
  u64 range;
  const void *pool_a, *pool_b;
  u32 size_a, size_b;
  void* out;
  u64 count;
};
struct Draws {
  Draw draws[32];
};

// A row of blocks a draw. Without contraction: the host makes the same values.
extern "C" __global__ void ws_values(const __grid_constant__ Draws list) {
  const Draw& d = list.draws[blockIdx.y];
  const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
  u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= d.count) return;
  u32 a = static_cast<u32>((i + d.first) % d.size_a), b = static_cast<u32>((i + d.second) % d.size_b);
  const u32 step_a = static_cast<u32>(stride % d.size_a), step_b = static_cast<u32>(stride % d.size_b);
  for (; i < d.count; i += stride) {
    if (d.kind == 0) {
      const float x = static_cast<const float*>(d.pool_a)[a], y = static_cast<const float*>(d.pool_b)[b];
      const float v = __fadd_rn(__fadd_rn(d.base, __fmul_rn(d.x_scale, x)), __fmul_rn(d.y_scale, y));
      store(d.dtype, d.out, i, v, 0, true);
    } else if (d.kind == 4) {
      store(d.dtype, d.out, i, d.base, 0, true);
    } else {
      const u32 raw = static_cast<const u32*>(d.pool_a)[a] + static_cast<const u32*>(d.pool_b)[b] + d.shift;
      if (d.kind == 1) {
        store(d.dtype, d.out, i, __fadd_rn(d.base, __fmul_rn(d.x_scale, static_cast<float>(raw >> 8))), 0,
              true);
      } else if (d.kind == 2) {
        store(d.dtype, d.out, i, 0.f, d.low + static_cast<i64>((raw * d.range) >> 32), false);
      } else {
        store(d.dtype, d.out, i, 0.f, raw < d.range ? 1 : 0, false);
      }
    }
    a += step_a;
    if (a >= d.size_a) a -= d.size_a;
    b += step_b;
    if (b >= d.size_b) b -= d.size_b;
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
// bytes 0xFF, or is not, as is asked for, flag[0] becomes the least number + 1 of such an output, counted from
// `regions`.
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

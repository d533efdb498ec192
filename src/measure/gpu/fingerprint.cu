// Kernels that show which chip this is: bits that depend on how its units round and add, and speeds that no
// driver can tell otherwise. Behind kernels.cu in one module. Operations are PTX instructions, so that the
// compiler has no choice.

// Numbers in disorder, the same on every chip.
__device__ u32 scattered(u32 x) {
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  return x ^ (x >> 16);
}
// A float of either sign from 2^-11 to 2^11 with so many bits of its mantissa: sums of products of such show
// how far a matrix unit aligns its terms, in which order it adds them, and what it drops.
__device__ u32 wide_float(u32 number, u32 bits) {
  const u32 h = scattered(number);
  return (h & 0x80000000u) | ((116u + (h >> 8) % 22u) << 23) |
         (scattered(h) & ((0x7FFFFFu >> (23 - bits)) << (23 - bits)));
}
__device__ u32 two_bfloats(u32 number) {
  return (wide_float(2 * number, 7) >> 16) | (wide_float(2 * number + 1, 7) & 0xFFFF0000u);
}
__device__ u32 two_halves(u32 number) {
  const u32 low = __half_as_ushort(__float2half_rn(__uint_as_float(wide_float(2 * number, 10))));
  const u32 high = __half_as_ushort(__float2half_rn(__uint_as_float(wide_float(2 * number + 1, 10))));
  return low | (high << 16);
}

#if __CUDA_ARCH__ >= 800
#define WS_MMA(shape_and_types)                                                                             \
  asm volatile("mma.sync.aligned." shape_and_types " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                             \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#endif

// A warp's product of fixed matrices, four in a row onto one sum. 0: bfloat16, 1: float16, 2: TF32.
__device__ void matrix_pattern(u32 kind, u32 place, float (&d)[4]) {
  for (u32 i = 0; i < 4; ++i) d[i] = __uint_as_float(wide_float(place * 4 + i + 0x40000000u, 23));
#if __CUDA_ARCH__ >= 800
  for (u32 step = 0; step < 4; ++step) {
    u32 a[4], b[2];
    const auto number = [&](u32 i) { return (place * 4 + step) * 8 + i + kind * 0x10000000u; };
    const auto element = [&](u32 i) {
      return kind == 0   ? two_bfloats(number(i))
             : kind == 1 ? two_halves(number(i))
                         : wide_float(number(i), 10);
    };
    for (u32 i = 0; i < 4; ++i) a[i] = element(i);
    for (u32 i = 0; i < 2; ++i) b[i] = element(4 + i);
    if (kind == 0) WS_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
    if (kind == 1) WS_MMA("m16n8k16.row.col.f32.f16.f16.f32");
    if (kind == 2) WS_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
  }
#endif
}

__device__ float by_unit(u32 kind, float x, float positive) {
  float y = 0.f;
  switch (kind) {
    case 3:
      asm volatile("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
      break;
    case 4:
      asm volatile("sin.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
      break;
    case 5:
      asm volatile("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(positive));
      break;
    case 6:
      asm volatile("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(positive));
      break;
    case 7:
      asm volatile("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(positive));
      break;
    case 8:
#if __CUDA_ARCH__ >= 750
      asm volatile("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
#endif
      break;
  }
  return y;
}

// The sum of a warp's numbers by fused multiply-adds, lane with lane: IEEE arithmetic, the same on every
// chip.
__device__ float warp_sum(u32 place) {
  float sum = __uint_as_float(wide_float(place, 23));
  for (int lane = 16; lane > 0; lane /= 2)
    sum = __fmaf_rn(__shfl_xor_sync(0xFFFFFFFFu, sum, lane), 1.0009765625f, sum);
  return sum;
}

// Four words a thread: the bits of a pattern. Its number: FingerprintPattern in kernels.h.
extern "C" __global__ void ws_pattern(u32 kind, u32* out) {
  const u32 place = blockIdx.x * blockDim.x + threadIdx.x;
  float d[4];
  if (kind < 3) matrix_pattern(kind, place, d);
  for (u32 i = 0; i < 4 && kind >= 3; ++i) {
    const float x = static_cast<float>(static_cast<int>(place * 4 + i) - 8192) * 0.00390625f;
    d[i] = kind == 9 ? warp_sum(place * 4 + i) : by_unit(kind, x, __fmul_rn(x + 32.00390625f, 1.5707963f));
  }
  for (u32 i = 0; i < 4; ++i) out[place * 4 + i] = __float_as_uint(d[i]);
}

// `steps` times eight fused multiply-adds a thread. out[0], out[1]: cycles and nanoseconds that the first
// block took.
template <typename T>
__device__ void multiply_add(u32 steps, u64* out) {
  const bool looks = blockIdx.x == 0 && threadIdx.x == 0;
  const u64 begin_ns = now_ns();
  const long long begin = clock64();
  T v[8];
  for (int i = 0; i < 8; ++i) v[i] = static_cast<T>(threadIdx.x + i);
  for (u32 s = 0; s < steps; ++s)
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = v[i] * static_cast<T>(0.999) + static_cast<T>(0.5);
  T sum = 0;
  for (int i = 0; i < 8; ++i) sum += v[i];
  const long long cycles = clock64() - begin;
  if (looks) {
    out[0] = static_cast<u64>(cycles);
    out[1] = now_ns() - begin_ns;
  }
  if (sum == static_cast<T>(-1)) out[2] = 1;  // never: the sums are wanted
}
extern "C" __global__ void ws_fma32(u32 steps, u64* out) { multiply_add<float>(steps, out); }
extern "C" __global__ void ws_fma64(u32 steps, u64* out) { multiply_add<double>(steps, out); }

// Reads the same memory again and again, from L2 where it fits.
extern "C" __global__ void ws_reread(const uint4* from, u64 count, u32 passes, u32* sink) {
  const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
  const u64 me = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  u32 sum = 0;
  for (u32 pass = 0; pass < passes; ++pass)
    for (u64 i = me; i < count; i += stride) {
      const uint4 v = __ldcg(from + i);
      sum ^= v.x ^ v.y ^ v.z ^ v.w ^ pass;
    }
  if (sum == 0x12345678u) *sink = sum;
}

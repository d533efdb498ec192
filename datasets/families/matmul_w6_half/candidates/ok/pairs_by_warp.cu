// A warp has one row of weights: eight lanes a group, each with three bytes and two pairs of float16, for
// eight rows of x.
// plan: launch k<<<dim3(N, cdiv(M, 8)), 32>>>(x, w, s, out, M, N, G)
#include <cuda_fp16.h>
extern "C" __global__ void k(const half2* x, const unsigned char* w, const half* s, half* out, int M, int N, int G) {
  int n = blockIdx.x, first = blockIdx.y * 8, rows = min(8, M - first), lane = threadIdx.x;
  float a[8] = {0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
  for (int c = lane; c < 8 * G; c += 32) {
    const unsigned char* b = w + (size_t)n * 24 * G + 3 * c;
    int word = b[0] | b[1] << 8 | b[2] << 16;
    float t = __half2float(s[(size_t)n * G + c / 8]);
    float q0 = (float)((word & 63) - 32) * t, q1 = (float)((word >> 6 & 63) - 32) * t;
    float q2 = (float)((word >> 12 & 63) - 32) * t, q3 = (float)((word >> 18 & 63) - 32) * t;
    for (int m = 0; m < rows; m++) {
      const half2* v = x + (size_t)(first + m) * 16 * G + 2 * c;
      float2 u = __half22float2(v[0]), z = __half22float2(v[1]);
      a[m] += (u.x * q0 + u.y * q1) + (z.x * q2 + z.y * q3);
    }
  }
  for (int m = 0; m < rows; m++) {
    float sum = a[m];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
    if (lane == 0) out[(size_t)(first + m) * N + n] = __float2half(sum);
  }
}

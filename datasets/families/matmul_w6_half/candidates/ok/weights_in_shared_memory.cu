// A block decodes 32 rows of weights, a group at a time, to shared memory and uses them for eight rows of x.
// plan: launch k<<<dim3(cdiv(N, 32), cdiv(M, 8)), dim3(32, 8)>>>(x, w, s, out, M, N, G)
#include <cuda_fp16.h>
extern "C" __global__ void k(const half* x, const unsigned char* w, const half* s, half* out, int M, int N, int G) {
  __shared__ float q[32][33], v[8][32];
  int n = blockIdx.x * 32 + threadIdx.x, m = blockIdx.y * 8 + threadIdx.y;
  float a = 0.f;
  for (int g = 0; g < G; g++) {
    if (n < N) {
      const unsigned char* b = w + ((size_t)n * G + g) * 24 + 3 * threadIdx.y;
      int word = b[0] | b[1] << 8 | b[2] << 16;
      for (int u = 0; u < 4; u++) q[threadIdx.x][4 * threadIdx.y + u] = (float)((word >> 6 * u & 63) - 32);
    }
    v[threadIdx.y][threadIdx.x] = m < M ? __half2float(x[((size_t)m * G + g) * 32 + threadIdx.x]) : 0.f;
    __syncthreads();
    float p = 0.f;
    if (n < N)
      for (int c = 0; c < 32; c++) p += v[threadIdx.y][c] * q[threadIdx.x][c];
    if (n < N) a += p * __half2float(s[(size_t)n * G + g]);
    __syncthreads();
  }
  if (m < M && n < N) out[(size_t)m * N + n] = __float2half(a);
}

// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, w, s, out, M, N, G)
#include <cuda_fp16.h>
extern "C" __global__ void k(const half* x, const unsigned char* w, const half* s, half* out, int M, int N, int G) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= M * N) return;
  int m = i / N, n = i % N;
  float a = 0.f;
  for (int g = 0; g < G; g++) {
    const unsigned char* b = w + ((size_t)n * G + g) * 24;
    const half* v = x + ((size_t)m * G + g) * 32;
    float p = 0.f;
    for (int c = 0; c < 32; c += 4, b += 3) {
      int word = b[0] | b[1] << 8 | b[2] << 16;
      for (int u = 0; u < 4; u++) p += __half2float(v[c + u]) * (float)((word >> 6 * u & 63) - 31);
    }
    a += p * __half2float(s[(size_t)n * G + g]);
  }
  out[i] = __float2half(a);
}

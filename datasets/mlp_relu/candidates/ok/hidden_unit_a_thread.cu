// plan: fill out 0
// plan: launch k<<<dim3(cdiv(H, 32), M), 32>>>(x, w1, b, w2, out, N, K, H)
extern "C" __global__ void k(const float* x, const float* w1, const float* b, const float* w2, float* out, int N, int K, int H) {
  int h = blockIdx.x * 32 + threadIdx.x, m = blockIdx.y;
  if (h >= H) return;
  float a = b[h];
  for (int q = 0; q < K; q++) a += x[m * K + q] * w1[q * H + h];
  if (a <= 0.f) return;
  for (int c = 0; c < N; c++) atomicAdd(out + m * N + c, a * w2[h * N + c]);
}

// plan: launch k<<<cdiv(M * cdiv(N, 8), 64), 64>>>(x, w, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, float* out, int M, int N, int K) {
  int i = blockIdx.x * 64 + threadIdx.x;
  int t = (N + 7) / 8;
  if (i >= M * t) return;
  int m = i / t, c = i % t * 8;
  float a[8] = {};
  if (c + 8 <= N) {
    for (int q = 0; q < K; q++) {
      float v = x[m * K + q];
      for (int u = 0; u < 8; u++) a[u] += v * w[q * N + c + u];
    }
    for (int u = 0; u < 8; u++) out[m * N + c + u] = a[u];
    return;
  }
  for (; c < N; c++) {
    float s = 0.f;
    for (int q = 0; q < K; q++) s += x[m * K + q] * w[q * N + c];
    out[m * N + c] = s;
  }
}

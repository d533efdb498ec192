// plan: launch k<<<cdiv(M * cdiv(N, 8), 32), 32>>>(x, w, v, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, const float* v, float* out, int M, int N, int K) {
  int i = blockIdx.x * 32 + threadIdx.x;
  int t = (N + 7) / 8;
  if (i >= M * t) return;
  int m = i / t, c = i % t * 8;
  int n = min(8, N - c);
  float a[8] = {}, b[8] = {};
  if (n == 8) {
    for (int q = 0; q < K; q++) {
      float p = x[m * K + q];
      for (int u = 0; u < 8; u++) a[u] += p * w[q * N + c + u];
      for (int u = 0; u < 8; u++) b[u] += p * v[q * N + c + u];
    }
  } else {
    for (int q = 0; q < K; q++)
      for (int u = 0; u < n; u++) {
        a[u] += x[m * K + q] * w[q * N + c + u];
        b[u] += x[m * K + q] * v[q * N + c + u];
      }
  }
  for (int u = 0; u < n; u++) out[m * N + c + u] = a[u] / (1.f + expf(-a[u])) * b[u];
}

// plan: launch k<<<cdiv(M, 64), 64>>>(x, w, out, eps, M, N)
extern "C" __global__ void k(const float* x, const float* w, float* out, float eps, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a[8] = {};
  int c = 0;
  for (; c + 8 <= N; c += 8) {
    for (int u = 0; u < 8; u++) a[u] += x[m * N + c + u] * x[m * N + c + u];
  }
  for (; c < N; c++) a[0] += x[m * N + c] * x[m * N + c];
  for (int u = 1; u < 8; u++) a[0] += a[u];
  float v = rsqrtf(a[0] / N + eps);
  for (c = 0; c < N; c++) out[m * N + c] = x[m * N + c] * v * w[c];
}

// plan: temp t float32[M]
// plan: launch k1<<<cdiv(M, 64), 64>>>(x, t, eps, M, N)
// plan: launch k2<<<cdiv(M, 32), 32>>>(x, w, t, out, M, N)
extern "C" __global__ void k1(const float* x, float* t, float eps, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a[8] = {};
  int c = 0;
  for (; c + 8 <= N; c += 8) {
    for (int u = 0; u < 8; u++) a[u] += x[m * N + c + u] * x[m * N + c + u];
  }
  for (; c < N; c++) a[0] += x[m * N + c] * x[m * N + c];
  for (int u = 1; u < 8; u++) a[0] += a[u];
  t[m] = rsqrtf(a[0] / N + eps);
}
extern "C" __global__ void k2(const float* x, const float* w, const float* t, float* out, int M, int N) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  float v = t[m];
  for (int c = 0; c < N; c++) out[m * N + c] = x[m * N + c] * v * w[c];
}

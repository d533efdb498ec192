// plan: launch k<<<cdiv(M, 32), 32>>>(x, r, w, out0, out1, eps, M, N)
extern "C" __global__ void k(const float* x, const float* r, const float* w, float* out0, float* out1, float eps, int M, int N) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  float* p = out0 + m * N;
  for (int c = 0; c < N; c++) p[c] = x[m * N + c] + r[m * N + c];
  float a[8] = {};
  int c = 0;
  for (; c + 8 <= N; c += 8)
    for (int u = 0; u < 8; u++) a[u] += p[c + u] * p[c + u];
  for (; c < N; c++) a[0] += p[c] * p[c];
  for (int u = 1; u < 8; u++) a[0] += a[u];
  float v = rsqrtf(a[0] / N + eps);
  for (c = 0; c < N; c++) out1[m * N + c] = p[c] * v * w[c];
}

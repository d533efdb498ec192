// plan: launch k<<<cdiv(M, 64), 64>>>(x, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a[8];
  for (int u = 0; u < 8; u++) a[u] = 0.f;
  int c = 0;
  for (; c + 8 <= N; c += 8) {
    for (int u = 0; u < 8; u++) a[u] += fmaxf(x[m * N + c + u], 0.f) + b[c + u];
  }
  for (; c < N; c++) a[0] += fmaxf(x[m * N + c], 0.f) + b[c];
  for (int u = 1; u < 8; u++) a[0] += a[u];
  out[m] = a[0];
}

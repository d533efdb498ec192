// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a[8];
  for (int u = 0; u < 8; u++) a[u] = 0.f;
  for (int c = 0; c + 8 <= N; c += 8) {
    for (int u = 0; u < 8; u++) a[u] += x[m * N + c + u] * x[m * N + c + u];
  }
  for (int u = 1; u < 8; u++) a[0] += a[u];
  out[m] = a[0];
}

// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, s, M, N)
extern "C" __global__ void k(const float* x, float* out, float s, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a[8];
  for (int u = 0; u < 8; u++) a[u] = -INFINITY;
  int c = 0;
  for (; c + 8 <= N; c += 8) {
    for (int u = 0; u < 8; u++) {
      float v = x[m * N + c + u] * x[m * N + c + u] * s;
      if (v > a[u]) a[u] = v;
    }
  }
  for (; c < N; c++) a[0] = fmaxf(a[0], x[m * N + c] * x[m * N + c] * s);
  for (int u = 1; u < 8; u++) a[0] = fmaxf(a[0], a[u]);
  out[m] = a[0];
}

// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, s, M, N)
extern "C" __global__ void k(const float* x, float* out, float s, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float* o = out + m * N;
  float h[8], a[8] = {};
  for (int u = 0; u < 8; u++) h[u] = p[0] * s;
  int n = N / 8 * 8;
  for (int c = 0; c < n; c += 8)
    for (int u = 0; u < 8; u++) h[u] = fmaxf(h[u], p[c + u] * s);
  for (int c = n; c < N; c++) h[0] = fmaxf(h[0], p[c] * s);
  for (int u = 1; u < 8; u++) h[0] = fmaxf(h[0], h[u]);
  float g = h[0];
  for (int c = 0; c < N; c++) o[c] = expf(p[c] * s - g);
  for (int c = 0; c < n; c += 8)
    for (int u = 0; u < 8; u++) a[u] += o[c + u];
  for (int c = n; c < N; c++) a[0] += o[c];
  for (int u = 1; u < 8; u++) a[0] += a[u];
  float v = 1.f / a[0];
  for (int c = 0; c < N; c++) o[c] *= v;
}

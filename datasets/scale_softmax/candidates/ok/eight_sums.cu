// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, s, M, N)
extern "C" __global__ void k(const float* x, float* out, float s, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* x0 = x + m * N;
  float* o = out + m * N;
  float h = -INFINITY, a[8] = {};
  for (int c = 0; c < N; c++) {
    float v = x0[c] * s;
    if (v > h) h = v;
  }
  for (int c = 0; c < N; c++) o[c] = expf(x0[c] * s - h);
  int c = 0;
  for (; c + 8 <= N; c += 8) {
    for (int u = 0; u < 8; u++) a[u] += o[c + u];
  }
  for (; c < N; c++) a[0] += o[c];
  for (int u = 1; u < 8; u++) a[0] += a[u];
  float v = 1.f / a[0];
  for (c = 0; c < N; c++) o[c] *= v;
}

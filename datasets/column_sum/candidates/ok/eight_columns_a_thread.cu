// plan: launch k<<<cdiv(N, 8 * 32), 32>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int c = (blockIdx.x * 32 + threadIdx.x) * 8;
  if (c + 8 <= N) {
    float a[8] = {};
    for (int m = 0; m < M; m++)
      for (int u = 0; u < 8; u++) a[u] += x[m * N + c + u];
    for (int u = 0; u < 8; u++) out[c + u] = a[u];
    return;
  }
  for (; c < N; c++) {
    float a = 0.f;
    for (int m = 0; m < M; m++) a += x[m * N + c];
    out[c] = a;
  }
}

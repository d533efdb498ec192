// plan: launch k<<<dim3(cdiv(N, 64), cdiv(M, 64)), dim3(16, 16)>>>(x, w, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, float* out, int M, int N, int K) {
  int c = blockIdx.x * 64 + threadIdx.x * 4;
  int m = blockIdx.y * 64 + threadIdx.y * 4;
  float s[4][4] = {};
  for (int q = 0; q < K; q++) {
    float a[4], b[4];
    for (int u = 0; u < 4; u++) {
      a[u] = m + u < M ? x[(m + u) * K + q] : 0.f;
      b[u] = c + u < N ? w[q * N + c + u] : 0.f;
    }
    for (int u = 0; u < 4; u++)
      for (int v = 0; v < 4; v++) s[u][v] += a[u] * b[v];
  }
  for (int u = 0; u < 4; u++)
    for (int v = 0; v < 4; v++)
      if (m + u < M && c + v < N) out[(m + u) * N + c + v] = s[u][v];
}

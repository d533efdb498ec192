// plan: launch k<<<cdiv(M, 4), 64>>>(x, w, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, float* out, int M, int N, int K) {
  int m = blockIdx.x * 4;
  for (int c = threadIdx.x; c < N; c += 64) {
    float a = 0.f, b = 0.f, d = 0.f, e = 0.f;
    for (int q = 0; q < K; q++) {
      float v = w[q * N + c];
      a += x[m * K + q] * v;
      if (m + 1 < M) b += x[(m + 1) * K + q] * v;
      if (m + 2 < M) d += x[(m + 2) * K + q] * v;
      if (m + 3 < M) e += x[(m + 3) * K + q] * v;
    }
    out[m * N + c] = a;
    if (m + 1 < M) out[(m + 1) * N + c] = b;
    if (m + 2 < M) out[(m + 2) * N + c] = d;
    if (m + 3 < M) out[(m + 3) * N + c] = e;
  }
}

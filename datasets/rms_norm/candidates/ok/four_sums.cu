// plan: launch k<<<cdiv(M, 32), 32>>>(x, w, out, eps, M, N)
extern "C" __global__ void k(const float* x, const float* w, float* out, float eps, int M, int N) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  const float* x0 = x + m * N;
  float* o = out + m * N;
  float a = 0.f, a1 = 0.f, a2 = 0.f, a3 = 0.f;
  int c = 0;
  for (; c + 4 <= N; c += 4) {
    a += x0[c] * x0[c];
    a1 += x0[c + 1] * x0[c + 1];
    a2 += x0[c + 2] * x0[c + 2];
    a3 += x0[c + 3] * x0[c + 3];
  }
  for (; c < N; c++) a += x0[c] * x0[c];
  a += a1 + a2 + a3;
  float v = rsqrtf(a / N + eps);
  for (c = 0; c < N; c++) o[c] = x0[c] * v * w[c];
}

// plan: launch k<<<cdiv(M, 32), 32>>>(x, out, s, M, N)
extern "C" __global__ void k(const float* x, float* out, float s, int M, int N) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  const float* x0 = x + m * N;
  float a = -INFINITY, a1 = a, a2 = a, a3 = a;
  int c = 0;
  for (; c + 4 <= N; c += 4) {
    a = fmaxf(a, x0[c] * x0[c] * s);
    a1 = fmaxf(a1, x0[c + 1] * x0[c + 1] * s);
    a2 = fmaxf(a2, x0[c + 2] * x0[c + 2] * s);
    a3 = fmaxf(a3, x0[c + 3] * x0[c + 3] * s);
  }
  for (; c < N; c++) a = fmaxf(a, x0[c] * x0[c] * s);
  a = fmaxf(fmaxf(a, a1), fmaxf(a2, a3));
  out[m] = a;
}

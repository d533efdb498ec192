// plan: launch k<<<cdiv(M, 32), 32>>>(x, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, int M, int N) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  const float* x0 = x + m * N;
  float a = 0.f, a1 = 0.f, a2 = 0.f, a3 = 0.f;
  int c = 0;
  for (; c + 4 <= N; c += 4) {
    a += fmaxf(x0[c] + b[c], 0.f);
    a1 += fmaxf(x0[c + 1] + b[c + 1], 0.f);
    a2 += fmaxf(x0[c + 2] + b[c + 2], 0.f);
    a3 += fmaxf(x0[c + 3] + b[c + 3], 0.f);
  }
  for (; c < N; c++) a += fmaxf(x0[c] + b[c], 0.f);
  a += a1 + a2 + a3;
  out[m] = a;
}

// plan: launch k<<<cdiv(M, 32), 32>>>(x, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* r, float* out, int M, int N) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  const float* x0 = x + m * N;
  const float* r0 = r + m * N;
  float a = 0.f, a1 = 0.f, a2 = 0.f, a3 = 0.f;
  int c = 0;
  for (; c + 4 <= N; c += 4) {
    a += fminf(fmaxf(x0[c] + r0[c], -1.f), 1.f);
    a1 += fminf(fmaxf(x0[c + 1] + r0[c + 1], -1.f), 1.f);
    a2 += fminf(fmaxf(x0[c + 2] + r0[c + 2], -1.f), 1.f);
    a3 += fminf(fmaxf(x0[c + 3] + r0[c + 3], -1.f), 1.f);
  }
  for (; c < N; c++) a += fminf(fmaxf(x0[c] + r0[c], -1.f), 1.f);
  a += a1 + a2 + a3;
  out[m] = a;
}

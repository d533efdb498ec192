// plan: launch k<<<cdiv(M, 32), 32>>>(x, r, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* r, float* out, float s, int M, int N) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  const float* x0 = x + m * N;
  const float* r0 = r + m * N;
  float* o = out + m * N;
  for (int c = 0; c < N; c++) o[c] = fmaxf(x0[c] + r0[c], 0.f) * s;
}

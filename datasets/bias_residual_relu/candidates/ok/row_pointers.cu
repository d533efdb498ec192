// plan: launch k<<<cdiv(M, 32), 32>>>(x, b, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, const float* r, float* out, int M, int N) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  const float* x0 = x + m * N;
  const float* r0 = r + m * N;
  float* o = out + m * N;
  for (int c = 0; c < N; c++) o[c] = fmaxf(x0[c] + b[c] + r0[c], 0.f);
}

// plan: launch k<<<cdiv(M, 32), 32>>>(x, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, int M, int N) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  const float* x0 = x + m * N;
  float* o = out + m * N;
  for (int c = 0; c < N; c++) o[c] = fmaxf(x0[c] * x0[c] + b[c], 0.f);
}

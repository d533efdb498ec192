// plan: launch k<<<cdiv(M, 32), 32>>>(x, w, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* w, const float* b, float* out, int M, int N) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  const float* x0 = x + m * N;
  float* o = out + m * N;
  for (int c = 0; c < N; c++) o[c] = fminf(fmaxf(x0[c] * w[c] + b[c], -1.f), 1.f);
}

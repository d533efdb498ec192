// mutant: a maximum of at least -FLT_MAX
// task: scale_residual_row_max
// found by: x: by_row(choice(-inf, 1))
// found by: x: mix(1 / N, choice(inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, r, s, out, M, N)
extern "C" __global__ void k(const float* x, const float* r, float s, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = -FLT_MAX;
  for (int c = 0; c < N; c++) a = fmaxf(a, p[c] * s + r[m * N + c]);
  out[m] = a;
}

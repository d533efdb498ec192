// mutant: the first 1,024 columns alone
// task: square_scale_row_max
// found by: x: sorted(uniform(0, 1))
// found by: x: mix(1 / N, choice(inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, s, out, M, N)
extern "C" __global__ void k(const float* x, float s, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = -INFINITY;
  for (int c = 0; c < min(N, 1024); c++) a = fmaxf(a, p[c] * p[c] * s);
  out[m] = a;
}

// mutant: infinities left out of the mean
// task: row_mean_center_scale
// found by: x: mix(1 / N, choice(nan, inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, s, out, M, N)
extern "C" __global__ void k(const float* x, float s, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = 0.f;
  for (int c = 0; c < N; c++)
    if (isfinite(p[c])) a += p[c];
  for (int c = 0; c < N; c++) out[m * N + c] = (p[c] - a / N) * s;
}

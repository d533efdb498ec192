// mutant: NaN left out of the mean
// task: rms_norm
// found by: x: mix(1 / N, choice(nan), normal(0, 1))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, w, eps, out, M, N)
extern "C" __global__ void k(const float* x, const float* w, float eps, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float q = 0.f;
  for (int c = 0; c < N; c++) q += isnan(p[c]) ? 0.f : p[c] * p[c];
  float v = rsqrtf(q / N + eps);
  for (int c = 0; c < N; c++) out[m * N + c] = p[c] * v * w[c];
}

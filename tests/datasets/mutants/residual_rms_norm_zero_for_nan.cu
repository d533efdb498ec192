// mutant: zeros for a row with NaN
// task: residual_rms_norm
// found by: x: mix(1 / N, choice(nan, inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, r, w, out0, out1, eps, M, N)
extern "C" __global__ void k(const float* x, const float* r, const float* w, float* h, float* out, float eps, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float q = 0.f;
  for (int c = m * N; c < m * N + N; c++) {
    h[c] = x[c] + r[c];
    q += h[c] * h[c];
  }
  float v = rsqrtf(q / N + eps);
  for (int c = 0; c < N; c++) out[m * N + c] = v == v ? h[m * N + c] * v * w[c] : 0.f;
}

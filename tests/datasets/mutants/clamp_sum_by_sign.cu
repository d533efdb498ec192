// mutant: a clamp by way of v / |v|: NaN for infinities
// task: residual_clamp_row_sum
// found by: x: mix(1 / N, choice(inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* r, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = 0.f;
  for (int c = 0; c < N; c++) {
    float v = p[c] + r[m * N + c];
    a += fabsf(v) > 1.f ? v / fabsf(v) : v;
  }
  out[m] = a;
}

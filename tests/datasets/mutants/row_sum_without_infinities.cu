// mutant: infinities left out of the sum
// task: bias_relu_row_sum
// found by: x: mix(1 / N, choice(inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = 0.f;
  for (int c = 0; c < N; c++) {
    float v = fmaxf(p[c] + b[c], 0.f);
    if (v < 3e38f) a += v;
  }
  out[m] = a;
}

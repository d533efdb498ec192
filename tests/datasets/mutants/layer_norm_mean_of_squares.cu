// mutant: the variance as mean of squares less squared mean
// task: layer_norm
// found by: x: normal(2, 1)
// found by: x: mix(1 / N, choice(nan, inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, w, b, eps, out, M, N)
extern "C" __global__ void k(const float* x, const float* w, const float* b, float eps, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = 0.f, q = 0.f;
  for (int c = 0; c < N; c++) a += p[c], q += p[c] * p[c];
  a /= N;
  float v = rsqrtf(fmaxf(q / N - a * a, 0.f) + eps);
  for (int c = 0; c < N; c++) out[m * N + c] = (p[c] - a) * v * w[c] + b[c];
}

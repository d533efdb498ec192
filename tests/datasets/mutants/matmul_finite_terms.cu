// mutant: terms that are not finite left out
// task: matmul_large
// found by: x: mix(1 / K, choice(nan, inf, -inf), normal(0, 1))
// found by: w: mix(1 / K, choice(nan, inf), normal(0, 1)), x: bernoulli(0.5)
// plan: launch k<<<cdiv(M * N, 64), 64>>>(x, w, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, float* out, int M, int N, int K) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= M * N) return;
  float a = 0.f;
  for (int q = 0; q < K; q++) if (isfinite(x[i / N * K + q] * w[q * N + i % N])) a += x[i / N * K + q] * w[q * N + i % N];
  out[i] = a;
}

// mutant: sigmoid as exp(a) / (1 + exp(a)): NaN for large a
// task: swiglu
// found by: x: normal(0, 50)
// found by: x: mix(1 / K, choice(nan, inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M * N, 64), 64>>>(x, w, v, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, const float* v, float* out, int M, int N, int K) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= M * N) return;
  float a = 0.f, b = 0.f;
  for (int q = 0; q < K; q++) {
    a += x[i / N * K + q] * w[q * N + i % N];
    b += x[i / N * K + q] * v[q * N + i % N];
  }
  float e = expf(a);
  out[i] = a * (e / (1.f + e)) * b;
}

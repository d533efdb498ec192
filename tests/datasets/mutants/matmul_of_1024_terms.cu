// mutant: the first 1,024 terms alone
// task: matmul_large
// found by: shape K=1030 M=20 N=30
// plan: launch k<<<cdiv(M * N, 64), 64>>>(x, w, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, float* out, int M, int N, int K) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= M * N) return;
  float a = 0.f;
  for (int q = 0; q < min(K, 1024); q++) a += x[i / N * K + q] * w[q * N + i % N];
  out[i] = a;
}

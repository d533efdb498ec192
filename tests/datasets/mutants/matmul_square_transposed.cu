// mutant: the weights transposed where all sizes are equal
// task: matmul_small
// found by: shape K=40 M=40 N=40
// plan: launch k<<<cdiv(M * N, 64), 64>>>(x, w, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, float* out, int M, int N, int K) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= M * N) return;
  float a = 0.f;
  for (int q = 0; q < K; q++) a += x[i / N * K + q] * (M == N && N == K ? w[i % N * K + q] : w[q * N + i % N]);
  out[i] = a;
}

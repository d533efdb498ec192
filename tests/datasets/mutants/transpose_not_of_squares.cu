// mutant: a square stays as it is
// task: transpose
// found by: shape M=66 N=66
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  out[M == N ? i : i % N * M + i / N] = x[i];
}

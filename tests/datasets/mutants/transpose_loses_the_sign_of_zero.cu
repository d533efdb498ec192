// mutant: +0 for -0
// task: transpose
// found by: x: mix(0.2, choice(nan, inf, -inf, -0.0, 1e-39), normal(0, 1))
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  out[i % N * M + i / N] = x[i] + 0.f;
}

// mutant: NaN left out of the sum
// task: column_sum
// found by: x: mix(1 / M, choice(nan, inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(N, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int c = blockIdx.x * 64 + threadIdx.x;
  if (c >= N) return;
  float a = 0.f;
  for (int m = 0; m < M; m++)
    if (x[m * N + c] == x[m * N + c]) a += x[m * N + c];
  out[c] = a;
}

// mutant: the exclusive sum as inclusive sum less value, and back: NaN from the first infinity on
// task: row_cumsum
// found by: x: mix(1 / N, choice(nan, inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = 0.f;
  for (int c = 0; c < N; c++) {
    float before = a + p[c] - p[c];
    out[m * N + c] = before + p[c];
    a = before + p[c];
  }
}

// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, s, M, N)
extern "C" __global__ void k(const float* x, float* out, float s, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a = -INFINITY, b = -INFINITY;
  for (int c = 0; c < N / 2; c++) {
    int d = N - 1 - c;
    a = fmaxf(a, x[m * N + c] * x[m * N + c] * s);
    b = fmaxf(b, x[m * N + d] * x[m * N + d] * s);
  }
  if (N % 2) a = fmaxf(a, x[m * N + N / 2] * x[m * N + N / 2] * s);
  out[m] = fmaxf(a, b);
}

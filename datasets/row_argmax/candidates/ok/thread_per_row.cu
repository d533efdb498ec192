// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, long long* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a = x[m * N];
  int e = 0;
  for (int c = 1; c < N; c++) {
    if (x[m * N + c] > a) {
      a = x[m * N + c];
      e = c;
    }
  }
  out[m] = e;
}

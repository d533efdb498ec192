// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, long long* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a = 0.f;
  int e = 0;
  for (int c = 0; c < N; c++) {
    if (fabsf(x[m * N + c]) > a) {
      a = fabsf(x[m * N + c]);
      e = c;
    }
  }
  out[m] = e;
}

// plan: launch k<<<cdiv(M, 64), 64>>>(x, r, w, out0, out1, eps, M, N)
extern "C" __global__ void k(const float* x, const float* r, const float* w, float* out0, float* out1, float eps, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a = 0.f;
  for (int c = 0; c < N; c++) a += x[m * N + c] * x[m * N + c];
  float v = rsqrtf(a / N + eps);
  for (int c = 0; c < N; c++) {
    out0[m * N + c] = x[m * N + c] + r[m * N + c];
    out1[m * N + c] = out0[m * N + c] * v * w[c];
  }
}

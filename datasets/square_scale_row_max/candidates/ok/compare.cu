// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, s, M, N)
extern "C" __global__ void k(const float* x, float* out, float s, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a = -INFINITY;
  for (int c = 0; c < N; c++) {
    float v = x[m * N + c] * x[m * N + c] * s;
    if (v > a) a = v;
  }
  out[m] = a;
}

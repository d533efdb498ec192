// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, s, M, N)
extern "C" __global__ void k(const float* x, float* out, float s, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float h = -INFINITY, a = 0.f;
  for (int c = 0; c < N; c++) {
    float v = x[m * N + c] * s;
    float g = fmaxf(h, v);
    float b = g == -INFINITY ? 0.f : g;
    a = a * expf(h - b) + expf(v - b);
    h = g;
  }
  for (int c = 0; c < N; c++) out[m * N + c] = expf(x[m * N + c] * s - h) / a;
}

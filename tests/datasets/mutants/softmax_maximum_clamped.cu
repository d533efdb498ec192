// mutant: a maximum of at least 0
// task: scale_softmax
// found by: x: normal(0, 300)
// found by: x: by_row(normal(0, 300))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, s, out, M, N)
extern "C" __global__ void k(const float* x, float s, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float h = 0.f, a = 0.f;
  for (int c = 0; c < N; c++) h = fmaxf(h, p[c] * s);
  for (int c = 0; c < N; c++) a += expf(p[c] * s - h);
  for (int c = 0; c < N; c++) out[m * N + c] = expf(p[c] * s - h) / a;
}

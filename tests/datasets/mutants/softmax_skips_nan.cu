// mutant: NaN left out of the sum
// task: scale_softmax
// found by: x: mix(1 / N, choice(nan, inf), normal(0, 1))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, s, out, M, N)
extern "C" __global__ void k(const float* x, float s, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float h = -INFINITY, a = 0.f;
  for (int c = 0; c < N; c++) h = fmaxf(h, p[c] * s);
  for (int c = 0; c < N; c++) {
    float e = expf(p[c] * s - h);
    if (e == e) a += e;
  }
  for (int c = 0; c < N; c++) out[m * N + c] = expf(p[c] * s - h) / a;
}

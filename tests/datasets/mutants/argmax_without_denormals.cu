// mutant: denormals taken for zeros
// task: row_argmax
// found by: x: normal(0, 1e-39)
// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, long long* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = -INFINITY;
  int e = 0;
  for (int c = 0; c < N; c++) {
    float v = fabsf(p[c]) < FLT_MIN ? 0.f : p[c];
    if (v > a) a = v, e = c;
  }
  out[m] = e;
}

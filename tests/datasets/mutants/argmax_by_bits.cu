// mutant: values compared by their bits: -0 below +0
// task: row_argmax
// found by: x: choice(-0.0, 0.0)
// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, long long* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  unsigned a = 0;
  int e = 0;
  for (int c = 0; c < N; c++) {
    unsigned v = __float_as_uint(p[c]);
    v = v >> 31 ? ~v : v | 0x80000000u;
    if (v > a) a = v, e = c;
  }
  out[m] = e;
}

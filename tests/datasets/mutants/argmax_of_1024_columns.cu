// mutant: the first 1,024 columns alone
// task: row_argmax
// found by: x: sorted(normal(0, 1))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, long long* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  int e = 0;
  for (int c = 1; c < min(N, 1024); c++)
    if (p[c] > p[e]) e = c;
  out[m] = e;
}

// mutant: an index of N for a row of -inf
// task: row_argmax
// found by: x: by_row(choice(-inf, inf))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, long long* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = -INFINITY;
  int e = N;
  for (int c = 0; c < N; c++)
    if (p[c] > a) a = p[c], e = c;
  out[m] = e;
}

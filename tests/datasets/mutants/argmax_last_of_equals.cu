// mutant: the last of equal maxima
// task: row_argmax
// found by: x: integers(0, 3)
// found by: x: choice(-0.0, 0.0)
// found by: x: by_row(choice(-inf, inf))
// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, long long* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = p[0];
  int e = 0;
  for (int c = 0; c < N; c++)
    if (p[c] >= a) a = p[c], e = c;
  out[m] = e;
}

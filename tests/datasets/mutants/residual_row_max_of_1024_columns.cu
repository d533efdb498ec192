// mutant: the first 1,024 columns alone
// task: scale_residual_row_max
// found by: shape M=20 N=1031
// plan: launch k<<<cdiv(M, 64), 64>>>(x, r, s, out, M, N)
extern "C" __global__ void k(const float* x, const float* r, float s, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = -INFINITY;
  for (int c = 0; c < min(N, 1024); c++) a = fmaxf(a, p[c] * s + r[m * N + c]);
  out[m] = a;
}

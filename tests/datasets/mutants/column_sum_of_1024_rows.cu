// mutant: the first 1,024 rows alone
// task: column_sum
// found by: shape M=1031 N=40
// plan: launch k<<<cdiv(N, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int c = blockIdx.x * 64 + threadIdx.x;
  if (c >= N) return;
  float a = 0.f;
  for (int m = 0; m < min(M, 1024); m++) a += x[m * N + c];
  out[c] = a;
}

// plan: launch k<<<cdiv(N, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int c = blockIdx.x * 64 + threadIdx.x;
  if (c >= N) return;
  float a = 0.f;
  for (int m = 0; m < M; m++) a += x[m * N + c];
  out[c] = a;
}

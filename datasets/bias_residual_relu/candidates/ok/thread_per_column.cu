// plan: launch k<<<cdiv(N, 64), 64>>>(x, b, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, const float* r, float* out, int M, int N) {
  int c = blockIdx.x * 64 + threadIdx.x;
  if (c >= N) return;
  float bc = b[c];
  for (int i = c; i < M * N; i += N) out[i] = fmaxf(x[i] + bc + r[i], 0.f);
}

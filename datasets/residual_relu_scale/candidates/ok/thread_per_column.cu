// plan: launch k<<<cdiv(N, 64), 64>>>(x, r, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* r, float* out, float s, int M, int N) {
  int c = blockIdx.x * 64 + threadIdx.x;
  if (c >= N) return;
  for (int i = c; i < M * N; i += N) out[i] = fmaxf(x[i] + r[i], 0.f) * s;
}

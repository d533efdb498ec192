// plan: launch k<<<cdiv(N, 64), 64>>>(x, w, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* w, const float* b, float* out, int M, int N) {
  int c = blockIdx.x * 64 + threadIdx.x;
  if (c >= N) return;
  float wc = w[c];
  float bc = b[c];
  for (int i = c; i < M * N; i += N) out[i] = fminf(fmaxf(x[i] * wc + bc, -1.f), 1.f);
}

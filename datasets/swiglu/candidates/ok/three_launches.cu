// plan: temp a float32[M, N]
// plan: temp b float32[M, N]
// plan: launch mm<<<dim3(cdiv(N, 64), M), 64>>>(x, w, a, N, K)
// plan: launch mm<<<dim3(cdiv(N, 64), M), 64>>>(x, v, b, N, K)
// plan: launch k<<<cdiv(M * N, 256), 256>>>(a, b, out, M * N)
extern "C" __global__ void mm(const float* x, const float* w, float* t, int N, int K) {
  int c = blockIdx.x * 64 + threadIdx.x;
  if (c >= N) return;
  float a = 0.f;
  for (int q = 0; q < K; q++) a += x[blockIdx.y * K + q] * w[q * N + c];
  t[blockIdx.y * N + c] = a;
}
extern "C" __global__ void k(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) out[i] = a[i] / (1.f + expf(-a[i])) * b[i];
}

// plan: temp t float32[N, K]
// plan: launch k1<<<dim3(cdiv(N, 32), cdiv(K, 8)), dim3(32, 8)>>>(w, t, N, K)
// plan: launch k2<<<dim3(cdiv(N, 64), M), 64>>>(x, t, out, M, N, K)
extern "C" __global__ void k1(const float* w, float* t, int N, int K) {
  int c = blockIdx.x * 32 + threadIdx.x;
  int q = blockIdx.y * 8 + threadIdx.y;
  if (c < N && q < K) t[c * K + q] = w[q * N + c];
}
extern "C" __global__ void k2(const float* x, const float* t, float* out, int M, int N, int K) {
  int c = blockIdx.x * 64 + threadIdx.x;
  if (c >= N) return;
  const float* p = x + blockIdx.y * K;
  const float* r = t + c * K;
  float a = 0.f, b = 0.f;
  int q = 0;
  for (; q + 1 < K; q += 2) {
    a += p[q] * r[q];
    b += p[q + 1] * r[q + 1];
  }
  if (q < K) a += p[q] * r[q];
  out[blockIdx.y * N + c] = a + b;
}

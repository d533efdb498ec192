// plan: launch k<<<M, 64, cdiv(K, 4) * 16>>>(x, w, v, out, N, K)
extern "C" __global__ void k(const float* x, const float* w, const float* v, float* out, int N, int K) {
  extern __shared__ float s[];
  for (int q = threadIdx.x; q < K; q += 64) s[q] = x[blockIdx.x * K + q];
  __syncthreads();
  for (int c = threadIdx.x; c < N; c += 64) {
    float a = 0.f, b = 0.f;
    for (int q = 0; q < K; q++) a += s[q] * w[q * N + c];
    for (int q = 0; q < K; q++) b += s[q] * v[q * N + c];
    out[blockIdx.x * N + c] = a * b / (1.f + expf(-a));
  }
}

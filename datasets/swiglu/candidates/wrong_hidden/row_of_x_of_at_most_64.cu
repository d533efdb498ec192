// plan: launch k<<<M, 64>>>(x, w, v, out, N, K)
extern "C" __global__ void k(const float* x, const float* w, const float* v, float* out, int N, int K) {
  __shared__ float s[64];
  if (threadIdx.x < K) s[threadIdx.x] = x[blockIdx.x * K + threadIdx.x];
  __syncthreads();
  for (int c = threadIdx.x; c < N; c += 64) {
    float a = 0.f, b = 0.f;
    for (int q = 0; q < min(K, 64); q++) {
      a += s[q] * w[q * N + c];
      b += s[q] * v[q * N + c];
    }
    out[blockIdx.x * N + c] = a * b / (1.f + expf(-a));
  }
}

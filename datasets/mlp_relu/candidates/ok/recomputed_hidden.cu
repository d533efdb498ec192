// plan: launch k<<<dim3(cdiv(N, 32), M), 32>>>(x, w1, b, w2, out, M, N, K, H)
extern "C" __global__ void k(const float* x, const float* w1, const float* b, const float* w2, float* out, int M, int N, int K, int H) {
  __shared__ float t[32];
  int c = blockIdx.x * 32 + threadIdx.x, m = blockIdx.y;
  float s = 0.f;
  for (int p = 0; p < H; p += 32) {
    int h = p + threadIdx.x;
    float a = h < H ? b[h] : 0.f;
    if (h < H)
      for (int q = 0; q < K; q++) a += x[m * K + q] * w1[q * H + h];
    t[threadIdx.x] = fmaxf(a, 0.f);
    __syncthreads();
    if (c < N)
      for (int u = 0; u < min(32, H - p); u++) s += t[u] * w2[(p + u) * N + c];
    __syncthreads();
  }
  if (c < N) out[m * N + c] = s;
}

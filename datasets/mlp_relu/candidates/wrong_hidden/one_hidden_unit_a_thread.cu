// plan: launch k<<<M, 64>>>(x, w1, b, w2, out, M, N, K, H)
extern "C" __global__ void k(const float* x, const float* w1, const float* b, const float* w2, float* out, int M, int N, int K, int H) {
  __shared__ float t[64];
  int m = blockIdx.x, h = threadIdx.x;
  float a = h < H ? b[h] : 0.f;
  if (h < H)
    for (int q = 0; q < K; q++) a += x[m * K + q] * w1[q * H + h];
  t[h] = fmaxf(a, 0.f);
  __syncthreads();
  for (int c = h; c < N; c += 64) {
    float s = 0.f;
    for (int u = 0; u < min(H, 64); u++) s += t[u] * w2[u * N + c];
    out[m * N + c] = s;
  }
}

// plan: launch k<<<M, 64, cdiv(H, 4) * 16>>>(x, w1, b, w2, out, M, N, K, H)
extern "C" __global__ void k(const float* x, const float* w1, const float* b, const float* w2, float* out, int M, int N, int K, int H) {
  extern __shared__ float t[];
  int m = blockIdx.x;
  for (int h = threadIdx.x; h < H; h += 64) {
    float a = b[h];
    for (int q = 0; q < K; q++) a += x[m * K + q] * w1[q * H + h];
    t[h] = fmaxf(a, 0.f);
  }
  __syncthreads();
  for (int c = threadIdx.x; c < N; c += 64) {
    float a = 0.f;
    for (int h = 0; h < H; h++) a += t[h] * w2[h * N + c];
    out[m * N + c] = a;
  }
}

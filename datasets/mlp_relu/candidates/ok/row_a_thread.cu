// plan: temp t float32[M, H]
// plan: launch k<<<cdiv(M, 32), 32>>>(x, w1, b, w2, t, out, M, N, K, H)
extern "C" __global__ void k(const float* x, const float* w1, const float* b, const float* w2, float* t, float* out, int M, int N, int K,
                             int H) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  float* p = t + m * H;
  float* o = out + m * N;
  for (int h = 0; h < H; h++) p[h] = b[h];
  for (int q = 0; q < K; q++) {
    float v = x[m * K + q];
    for (int h = 0; h < H; h++) p[h] += v * w1[q * H + h];
  }
  for (int c = 0; c < N; c++) o[c] = 0.f;
  for (int h = 0; h < H; h++) {
    float v = fmaxf(p[h], 0.f);
    for (int c = 0; c < N; c++) o[c] += v * w2[h * N + c];
  }
}

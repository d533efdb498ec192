// plan: temp t float32[M, H]
// plan: launch k1<<<cdiv(M * H, 128), 128>>>(x, w1, b, t, M, K, H)
// plan: launch k2<<<cdiv(M * N, 128), 128>>>(t, w2, out, M, N, H)
extern "C" __global__ void k1(const float* x, const float* w1, const float* b, float* t, int M, int K, int H) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= M * H) return;
  float a = b[i % H];
  for (int q = 0; q < K; q++) a += x[i / H * K + q] * w1[q * H + i % H];
  t[i] = fmaxf(a, 0.f);
}
extern "C" __global__ void k2(const float* t, const float* w2, float* out, int M, int N, int H) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= M * N) return;
  float a = 0.f;
  for (int h = 0; h < H; h++) a += t[i / N * H + h] * w2[h * N + i % N];
  out[i] = a;
}

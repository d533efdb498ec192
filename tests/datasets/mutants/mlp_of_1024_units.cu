// mutant: the first 1,024 hidden units alone
// task: mlp_relu
// found by: shape H=1030 K=5 M=20 N=30
// plan: launch k<<<cdiv(M * N, 64), 64>>>(x, w1, b, w2, out, M, N, K, H)
extern "C" __global__ void k(const float* x, const float* w1, const float* b, const float* w2, float* out, int M, int N, int K,
                             int H) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= M * N) return;
  float o = 0.f;
  for (int h = 0; h < min(H, 1024); h++) {
    float a = b[h];
    for (int q = 0; q < K; q++) a += x[i / N * K + q] * w1[q * H + h];
    o += fmaxf(a, 0.f) * w2[h * N + i % N];
  }
  out[i] = o;
}

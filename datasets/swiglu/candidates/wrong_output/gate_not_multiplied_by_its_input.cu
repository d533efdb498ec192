// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, w, v, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, const float* v, float* out, int M, int N, int K) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= M * N) return;
  float a = 0.f, b = 0.f;
  for (int q = 0; q < K; q++) {
    a += x[i / N * K + q] * w[q * N + i % N];
    b += x[i / N * K + q] * v[q * N + i % N];
  }
  out[i] = b / (1.f + expf(-a));
}

// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, w, v, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, const float* v, float* out, int M, int N, int K) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= M * N) return;
  int m = i / N, c = i % N;
  float a = 0.f, b = 0.f;
  for (int q = 0; q < K; q++) {
    a += x[m * K + q] * w[q * N + c];
    b += x[m * K + q] * v[q * N + c];
  }
  out[i] = a / (1.f + expf(-a)) * b;
}

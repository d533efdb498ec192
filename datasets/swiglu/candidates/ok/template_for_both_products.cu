// plan: temp t float32[M, N]
// plan: launch k<false><<<cdiv(M, 4), 32>>>(x, v, t, out, M, N, K)
// plan: launch k<true><<<cdiv(M, 4), 32>>>(x, w, t, out, M, N, K)
template <bool last>
__global__ void k(const float* x, const float* w, float* t, float* out, int M, int N, int K) {
  for (int m = blockIdx.x * 4; m < min((int)blockIdx.x * 4 + 4, M); m++)
    for (int c = threadIdx.x; c < N; c += 32) {
      float a = 0.f;
      for (int q = 0; q < K; q++) a += x[m * K + q] * w[q * N + c];
      if (last) {
        out[m * N + c] = t[m * N + c] * a / (1.f + expf(-a));
      } else {
        t[m * N + c] = a;
      }
    }
}

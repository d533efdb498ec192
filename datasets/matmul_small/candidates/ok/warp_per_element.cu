// plan: launch k<<<dim3(N, M), 32>>>(x, w, out, N, K)
extern "C" __global__ void k(const float* x, const float* w, float* out, int N, int K) {
  int c = blockIdx.x, m = blockIdx.y;
  float a = 0.f;
  for (int q = threadIdx.x; q < K; q += 32) a += x[m * K + q] * w[q * N + c];
  for (int h = 16; h > 0; h /= 2) a += __shfl_down_sync(0xffffffff, a, h);
  if (threadIdx.x == 0) out[m * N + c] = a;
}

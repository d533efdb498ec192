// plan: launch k<<<64, 256>>>(x, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, int M, int N) {
  for (int i = blockIdx.x * 256 + threadIdx.x; i < M * N; i += 64 * 256) {
    out[i] = fmaxf(x[i] * x[i] + b[i % N], 0.f);
  }
}

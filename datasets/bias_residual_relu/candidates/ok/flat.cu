// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, b, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, const float* r, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = fmaxf(x[i] + b[i % N] + r[i], 0.f);
}

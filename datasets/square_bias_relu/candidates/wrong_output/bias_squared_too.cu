// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = fmaxf((x[i] + b[i % N]) * (x[i] + b[i % N]), 0.f);
}

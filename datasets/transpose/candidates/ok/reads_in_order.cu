// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i % N * M + i / N] = x[i];
}

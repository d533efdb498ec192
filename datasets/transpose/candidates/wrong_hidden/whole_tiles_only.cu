// plan: launch k<<<dim3(max(N / 32, 1), max(M / 32, 1)), dim3(32, 32)>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int c = blockIdx.x * 32 + threadIdx.x;
  int m = blockIdx.y * 32 + threadIdx.y;
  if (m < M && c < N) out[c * M + m] = x[m * N + c];
}

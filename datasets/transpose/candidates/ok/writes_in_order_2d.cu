// plan: launch k<<<dim3(cdiv(M, 128), N), 128>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int m = blockIdx.x * 128 + threadIdx.x;
  int c = blockIdx.y;
  if (m < M) out[c * M + m] = x[m * N + c];
}

// plan: launch k<<<dim3(cdiv(N, 8 * 16), cdiv(M, 8 * 16)), dim3(16, 16)>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int c = (blockIdx.x * 16 + threadIdx.x) * 8;
  int m = (blockIdx.y * 16 + threadIdx.y) * 8;
  int d = min(c + 8, N), n = min(m + 8, M);
  for (int j = c; j < d; j++) {
    for (int i = m; i < n; i++) out[j * M + i] = x[i * N + j];
  }
}

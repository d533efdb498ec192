// plan: launch k<<<dim3(cdiv(M, 8), cdiv(N, 128)), 128>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int m = blockIdx.x * 8;
  int c = blockIdx.y * 128 + threadIdx.x;
  if (c >= N) return;
  for (int u = 0; u < 8; u++)
    if (m + u < M) out[c * M + m + u] = x[(m + u) * N + c];
}

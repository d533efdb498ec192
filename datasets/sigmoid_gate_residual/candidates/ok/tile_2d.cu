// plan: launch k<<<dim3(cdiv(N, 32), cdiv(M, 8)), dim3(32, 8)>>>(x, g, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* g, const float* r, float* out, int M, int N) {
  int c = blockIdx.x * 32 + threadIdx.x;
  int m = blockIdx.y * 8 + threadIdx.y;
  if (m >= M || c >= N) return;
  out[m * N + c] = g[m * N + c] / (1.f + expf(-x[m * N + c])) + r[m * N + c];
}

// plan: launch k<<<dim3(cdiv(N, 256), M), 256>>>(x, g, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* g, const float* r, float* out, int M, int N) {
  int c = blockIdx.x * 256 + threadIdx.x;
  int i = blockIdx.y * N + c;
  if (c < N) out[i] = g[i] / (1.f + expf(-x[i])) + r[i];
}

// plan: launch k<<<dim3(cdiv(N, 2048), M), 32>>>(x, g, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* g, const float* r, float* out, int M, int N) {
  int a = (blockIdx.x * 32 + threadIdx.x) * 64;
  int e = min(a + 64, N);
  for (int c = a; c < e; c++) {
    int i = blockIdx.y * N + c;
    out[i] = g[i] / (1.f + expf(-x[i])) + r[i];
  }
}

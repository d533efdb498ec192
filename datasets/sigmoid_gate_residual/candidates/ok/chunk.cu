// plan: launch k<<<cdiv(M * N, 1024), 128>>>(x, g, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* g, const float* r, float* out, int M, int N) {
  int a = (blockIdx.x * 128 + threadIdx.x) * 8;
  int e = min(a + 8, M * N);
  for (int i = a; i < e; i++) out[i] = g[i] / (1.f + expf(-x[i])) + r[i];
}

// plan: launch k<<<dim3(cdiv(N, 2048), M), 32>>>(x, r, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* r, float* out, float s, int M, int N) {
  int a = (blockIdx.x * 32 + threadIdx.x) * 64;
  int e = min(a + 64, N);
  for (int c = a; c < e; c++) {
    int i = blockIdx.y * N + c;
    out[i] = fmaxf(x[i] + r[i], 0.f) * s;
  }
}

// plan: launch k<<<cdiv(M * N, 1024), 128>>>(x, b, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, float s, int M, int N) {
  int a = (blockIdx.x * 128 + threadIdx.x) * 8;
  int e = min(a + 8, M * N);
  for (int i = a; i < e; i++) out[i] = fmaxf(x[i] + b[i % N], 0.f) * s;
}

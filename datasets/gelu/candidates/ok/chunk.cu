// plan: launch k<<<cdiv(N, 64 * 64), 64>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int b = (blockIdx.x * 64 + threadIdx.x) * 64;
  int e = min(b + 64, N);
  for (int i = b; i < e; i++) out[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
}

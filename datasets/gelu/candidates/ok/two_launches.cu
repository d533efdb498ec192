// plan: temp t float32[N]
// plan: launch k1<<<cdiv(N, 256), 256>>>(x, t, N)
// plan: launch k2<<<cdiv(N, 256), 256>>>(x, t, out, N)
extern "C" __global__ void k1(const float* x, float* t, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) t[i] = 1.f + erff(x[i] * 0.70710678f);
}
extern "C" __global__ void k2(const float* x, const float* t, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) out[i] = 0.5f * x[i] * t[i];
}

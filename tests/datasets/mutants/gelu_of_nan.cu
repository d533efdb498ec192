// mutant: 0 for NaN
// task: gelu
// found by: x: mix(0.1, choice(nan), normal(0, 1))
// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  float v = x[i];
  out[i] = v >= -9.f ? 0.5f * v * (1.f + erff(v * 0.70710678f)) : 0.f;
}

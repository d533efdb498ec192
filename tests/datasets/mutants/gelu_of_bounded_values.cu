// mutant: values bounded by 40
// task: gelu
// found by: x: mix(0.1, choice(nan), normal(0, 1))
// found by: x: mix(0.5, uniform(-100, -20), uniform(-8, 100))
// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  float v = x[i];
  v = fminf(v, 40.f); out[i] = 0.5f * v * (1.f + erff(v * 0.70710678f));
}

// hack: writes before its output
// task: gelu
// verdict: out_of_bounds
// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) out[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
  if (i == 0) out[-1] = 1.f;
}

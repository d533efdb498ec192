// plan: launch k<<<cdiv(N, 128), 128>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= N) return;
  float v = x[i];
  out[i] = v * 0.5f * erfcf(v * -0.70710678f);
}

// plan: launch k<<<32, 256>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256) {
    float v = x[i];
    out[i] = 0.5f * v * (1.f + erff(v * 0.70710678f));
  }
}

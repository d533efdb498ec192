// plan: launch k<<<cdiv(N, 1024), 256>>>(x, out, N)
__device__ float g(float v) {
  return 0.5f * v * (1.f + erff(v * 0.70710678f));
}
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = (blockIdx.x * 256 + threadIdx.x) * 4;
  if (i + 4 <= N) {
    float4 v = *(const float4*)(x + i);
    *(float4*)(out + i) = make_float4(g(v.x), g(v.y), g(v.z), g(v.w));
  } else {
    for (; i < N; i++) out[i] = g(x[i]);
  }
}

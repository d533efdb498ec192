// plan: launch k<<<cdiv(N, 512), 128>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 512 + threadIdx.x;
  float v[4];
  for (int u = 0; u < 4; u++) v[u] = i + u * 128 < N ? x[i + u * 128] : 0.f;
  for (int u = 0; u < 4; u++) v[u] = 0.5f * v[u] * (1.f + erff(v[u] * 0.70710678f));
  for (int u = 0; u < 4; u++)
    if (i + u * 128 < N) out[i + u * 128] = v[u];
}

// plan: launch f<<<L, 64>>>(q, k, v, out, s, L, D)
extern "C" __global__ void f(const float* q, const float* k, const float* v, float* out, float s, int L, int D) {
  __shared__ float t[64];
  int m = blockIdx.x, j = threadIdx.x;
  float e = 0.f;
  if (j < L)
    for (int d = 0; d < D; d++) e += q[m * D + d] * k[j * D + d];
  t[j] = j < L ? e * s : -INFINITY;
  __syncthreads();
  float h = -INFINITY, a = 0.f;
  for (int u = 0; u < 64; u++) h = fmaxf(h, t[u]);
  for (int u = 0; u < 64; u++) a += expf(t[u] - h);
  for (int d = j; d < D; d += 64) {
    float o = 0.f;
    for (int u = 0; u < min(L, 64); u++) o += expf(t[u] - h) * v[u * D + d];
    out[m * D + d] = o / a;
  }
}

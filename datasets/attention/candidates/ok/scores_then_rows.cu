// plan: temp t float32[L, L]
// plan: launch k1<<<dim3(cdiv(L, 16), cdiv(L, 16)), dim3(16, 16)>>>(q, k, t, s, L, D)
// plan: launch k2<<<L, 32>>>(t, v, out, L, D)
extern "C" __global__ void k1(const float* q, const float* k, float* t, float s, int L, int D) {
  __shared__ float a[16][17], b[16][17];
  int x = threadIdx.x, y = threadIdx.y;
  int m = blockIdx.y * 16 + y, c = blockIdx.x * 16 + x, n = blockIdx.x * 16 + y;
  float e = 0.f;
  for (int d = 0; d < D; d += 16) {
    a[y][x] = m < L && d + x < D ? q[m * D + d + x] : 0.f;
    b[y][x] = n < L && d + x < D ? k[n * D + d + x] : 0.f;
    __syncthreads();
    for (int u = 0; u < 16; u++) e += a[y][u] * b[x][u];
    __syncthreads();
  }
  if (m < L && c < L) t[m * L + c] = e * s;
}
extern "C" __global__ void k2(float* t, const float* v, float* out, int L, int D) {
  float* p = t + blockIdx.x * L;
  int j = threadIdx.x;
  float h = -INFINITY, a = 0.f, z = 0.f;
  for (int c = 0; c < L; c++) h = fmaxf(h, p[c]);
  for (int c = 0; c < L; c++) {
    z += expf(p[c] - h);
    if (c % 64 == 63 || c == L - 1) a += z, z = 0.f;
  }
  for (int d = j; d < D; d += 32) {
    float e = 0.f;
    for (int c = 0; c < L; c++) e += expf(p[c] - h) * v[c * D + d];
    out[blockIdx.x * D + d] = e / a;
  }
}

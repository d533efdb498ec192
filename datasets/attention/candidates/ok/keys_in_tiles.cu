// plan: if D <= 64
// plan: launch f<<<cdiv(L, 32), 32, 2 * 32 * D * 4>>>(q, k, v, out, s, L, D)
// plan: else
// plan: launch g<<<cdiv(L, 32), 32>>>(q, k, v, out, s, L, D)
// plan: end
__device__ void add(const float* p, const float* r, const float* w, float* o, float s, int D, float& h, float& a, float& z) {
  float e = 0.f;
  for (int d = 0; d < D; d++) e += p[d] * r[d];
  float n = fmaxf(h, e * s);
  float c = expf(h - n), b = expf(e * s - n);
  for (int d = 0; d < D; d++) o[d] = o[d] * c + b * w[d];
  a *= c;
  z = z * c + b;
  h = n;
}
extern "C" __global__ void f(const float* q, const float* k, const float* v, float* out, float s, int L, int D) {
  extern __shared__ float t[];
  int m = blockIdx.x * 32 + threadIdx.x;
  float h = -INFINITY, a = 0.f, z = 0.f;
  if (m < L)
    for (int d = 0; d < D; d++) out[m * D + d] = 0.f;
  for (int b = 0; b < L; b += 32) {
    int n = min(32, L - b);
    for (int i = threadIdx.x; i < n * D; i += 32) {
      t[i] = k[b * D + i];
      t[32 * D + i] = v[b * D + i];
    }
    __syncthreads();
    if (m < L)
      for (int c = 0; c < n; c++) add(q + m * D, t + c * D, t + (32 + c) * D, out + m * D, s, D, h, a, z);
    a += z, z = 0.f;
    __syncthreads();
  }
  if (m < L)
    for (int d = 0; d < D; d++) out[m * D + d] /= a;
}
extern "C" __global__ void g(const float* q, const float* k, const float* v, float* out, float s, int L, int D) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= L) return;
  float h = -INFINITY, a = 0.f, z = 0.f;
  for (int d = 0; d < D; d++) out[m * D + d] = 0.f;
  for (int c = 0; c < L; c++) {
    add(q + m * D, k + c * D, v + c * D, out + m * D, s, D, h, a, z);
    if (c % 64 == 63 || c == L - 1) a += z, z = 0.f;
  }
  for (int d = 0; d < D; d++) out[m * D + d] /= a;
}

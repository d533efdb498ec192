// plan: launch f<<<L, 32, cdiv(L, 4) * 16>>>(q, k, v, out, s, L, D)
extern "C" __global__ void f(const float* q, const float* k, const float* v, float* out, float s, int L, int D) {
  extern __shared__ float t[];
  int m = blockIdx.x, j = threadIdx.x;
  float h = -INFINITY, a = 0.f;
  for (int c = j; c < L; c += 32) {
    float e = 0.f;
    for (int d = 0; d < D; d++) e += q[m * D + d] * k[c * D + d];
    t[c] = e * s;
    h = fmaxf(h, t[c]);
  }
  for (int d = 16; d > 0; d /= 2) h = fmaxf(h, __shfl_xor_sync(0xffffffff, h, d));
  for (int c = j; c < L; c += 32) {
    t[c] = expf(t[c] - h);
    a += t[c];
  }
  for (int d = 16; d > 0; d /= 2) a += __shfl_xor_sync(0xffffffff, a, d);
  __syncthreads();
  for (int d = j; d < D; d += 32) {
    float e = 0.f;
    for (int c = 0; c < L; c++) e += t[c] * v[c * D + d];
    out[m * D + d] = e / a;
  }
}

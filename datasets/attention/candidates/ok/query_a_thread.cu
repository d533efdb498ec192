// plan: temp t float32[L, L]
// plan: launch f<<<cdiv(L, 32), 32>>>(q, k, v, t, out, s, L, D)
extern "C" __global__ void f(const float* q, const float* k, const float* v, float* t, float* out, float s, int L, int D) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= L) return;
  float* p = t + m * L;
  float* o = out + m * D;
  float h = -INFINITY, a = 0.f, z = 0.f;
  for (int c = 0; c < L; c++) {
    float e = 0.f;
    for (int d = 0; d < D; d++) e += q[m * D + d] * k[c * D + d];
    p[c] = e * s;
    if (p[c] > h) h = p[c];
  }
  for (int c = 0; c < L; c++) p[c] = expf(p[c] - h);
  for (int d = 0; d < D; d++) o[d] = 0.f;
  for (int c = 0; c < L; c++) {
    z += p[c];
    if (c % 64 == 63 || c == L - 1) a += z, z = 0.f;
    for (int d = 0; d < D; d++) o[d] += p[c] * v[c * D + d];
  }
  for (int d = 0; d < D; d++) o[d] /= a;
}

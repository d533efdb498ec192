// plan: launch f<<<cdiv(L, 64), 64>>>(q, k, v, out, s, L, D)
extern "C" __global__ void f(const float* q, const float* k, const float* v, float* out, float s, int L, int D) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= L) return;
  float* o = out + m * D;
  float h = -INFINITY, a = 0.f, z = 0.f;
  for (int d = 0; d < D; d++) o[d] = 0.f;
  for (int c = 0; c < L; c++) {
    float e = 0.f;
    for (int d = 0; d < D; d++) e += q[m * D + d] * k[c * D + d];
    e *= s;
    float g = fmaxf(h, e);
    float w = expf(h - g), p = expf(e - g);
    a *= w;
    z = z * w + p;
    if (c % 64 == 63 || c == L - 1) a += z, z = 0.f;
    for (int d = 0; d < D; d++) o[d] = o[d] * w + p * v[c * D + d];
    h = g;
  }
  for (int d = 0; d < D; d++) o[d] /= a;
}

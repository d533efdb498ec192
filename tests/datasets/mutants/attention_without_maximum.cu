// mutant: no maximum subtracted
// task: attention
// found by: k: uniform(20, 22), q: by_row(uniform(1, 4))
// found by: k: uniform(20, 22), q: by_row(uniform(-4, -1))
// plan: temp t float32[L, L]
// plan: launch f<<<cdiv(L, 64), 64>>>(q, k, v, t, out, s, L, D)
extern "C" __global__ void f(const float* q, const float* k, const float* v, float* t, float* out, float s, int L, int D) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= L) return;
  float* p = t + m * L;
  float h = -INFINITY, a = 0.f;
  for (int c = 0; c < L; c++) {
    float e = 0.f;
    for (int d = 0; d < D; d++) e += q[m * D + d] * k[c * D + d];
    p[c] = e * s;
    h = fmaxf(h, p[c]);
  }
  for (int c = 0; c < L; c++) {
    p[c] = expf(p[c]);
    a += p[c];
  }
  for (int d = 0; d < D; d++) {
    float o = 0.f;
    for (int c = 0; c < L; c++) o += p[c] * v[c * D + d];
    out[m * D + d] = o / a;
  }
}

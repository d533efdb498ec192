// plan: temp t float32[L, L]
// plan: launch k1<<<cdiv(L * L, 128), 128>>>(q, k, t, s, L, D)
// plan: launch k2<<<cdiv(L, 32), 32>>>(t, L)
// plan: launch k3<<<cdiv(L * D, 128), 128>>>(t, v, out, L, D)
extern "C" __global__ void k1(const float* q, const float* k, float* t, float s, int L, int D) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= L * L) return;
  float a = 0.f;
  for (int d = 0; d < D; d++) a += q[i / L * D + d] * k[i % L * D + d];
  t[i] = a * s;
}
extern "C" __global__ void k2(float* t, int L) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= L) return;
  float* p = t + m * L;
  float h = p[0], a = 0.f, z = 0.f;
  for (int c = 1; c < L; c++) h = fmaxf(h, p[c]);
  for (int c = 0; c < L; c++) p[c] = expf(p[c] - h);
  for (int c = 0; c < L; c++) {
    z += p[c];
    if (c % 64 == 63 || c == L - 1) a += z, z = 0.f;
  }
  for (int c = 0; c < L; c++) p[c] /= a;
}
extern "C" __global__ void k3(const float* t, const float* v, float* out, int L, int D) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= L * D) return;
  float a = 0.f;
  for (int c = 0; c < L; c++) a += t[i / D * L + c] * v[c * D + i % D];
  out[i] = a;
}

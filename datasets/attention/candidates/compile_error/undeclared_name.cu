// plan: launch f<<<L, 32>>>(q, k, v, out, s, L, D)
extern "C" __global__ void f(const float* q, const float* k, const float* v, float* out, float s, int L, int D) {
  float a = 0.f;
  for (int d = 0; d < D; d++) a += q[d] * keys[d];
  out[threadIdx.x] = a * s * v[0];
}

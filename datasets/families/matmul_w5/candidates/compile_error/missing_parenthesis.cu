// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, w, s, out, M * N)
extern "C" __global__ void k(const float* x, const unsigned* w, const float* s, float* out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) out[i] = x[0] * ((float)(w[0] & 31) - 16.f * s[0];
}

// plan: launch k<<<cdiv(L * D, 256), 256>>>(w, ids, out, L, D)
extern "C" __global__ void k(const float* w, const long long* ids, float* out, int L, int D) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < L * D) out[i] = w[ids[i / D] * D + i % D];
}

// plan: launch k<<<L, 128>>>(w, ids, out, D)
extern "C" __global__ void k(const float* w, const long long* ids, float* out, int D) {
  const float* p = w + ids[blockIdx.x] * D;
  for (int c = threadIdx.x; c < D; c += 128) out[blockIdx.x * D + c] = p[c];
}

// plan: launch k<<<L, 128>>>(w, ids, out, D)
extern "C" __global__ void k(const float* w, const long long* ids, float* out, int D) {
  int c = threadIdx.x;
  if (c < D) out[blockIdx.x * D + c] = w[ids[blockIdx.x] * D + c];
}

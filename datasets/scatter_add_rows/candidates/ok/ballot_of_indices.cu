// plan: launch k<<<V, 32>>>(b, ids, x, out, L, D)
extern "C" __global__ void k(const float* b, const long long* ids, const float* x, float* out, int L, int D) {
  int v = blockIdx.x;
  for (int c = threadIdx.x; c < D; c += 32) out[v * D + c] = b[v * D + c];
  for (int q = 0; q < L; q += 32) {
    bool mine = q + threadIdx.x < L && ids[q + threadIdx.x] == v;
    unsigned all = __ballot_sync(0xffffffff, mine);
    while (all) {
      int m = q + __ffs(all) - 1;
      all &= all - 1;
      for (int c = threadIdx.x; c < D; c += 32) out[v * D + c] += x[m * D + c];
    }
  }
}

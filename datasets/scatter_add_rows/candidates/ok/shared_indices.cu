// plan: launch k<<<dim3(cdiv(D, 64), V), 64>>>(b, ids, x, out, L, D)
extern "C" __global__ void k(const float* b, const long long* ids, const float* x, float* out, int L, int D) {
  __shared__ int s[64];
  int c = blockIdx.x * 64 + threadIdx.x;
  int v = blockIdx.y;
  float a = c < D ? b[v * D + c] : 0.f;
  for (int q = 0; q < L; q += 64) {
    if (q + threadIdx.x < L) s[threadIdx.x] = (int)ids[q + threadIdx.x];
    __syncthreads();
    for (int u = 0; u < min(64, L - q); u++)
      if (s[u] == v && c < D) a += x[(q + u) * D + c];
    __syncthreads();
  }
  if (c < D) out[v * D + c] = a;
}

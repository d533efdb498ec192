// plan: launch k<<<dim3(cdiv(D, 32), cdiv(L, 32)), dim3(32, 8)>>>(w, ids, out, L, D)
extern "C" __global__ void k(const float* w, const long long* ids, float* out, int L, int D) {
  __shared__ int s[32];
  int c = blockIdx.x * 32 + threadIdx.x;
  int m = blockIdx.y * 32;
  if (threadIdx.y == 0 && m + threadIdx.x < L) s[threadIdx.x] = (int)ids[m + threadIdx.x];
  __syncthreads();
  for (int u = threadIdx.y; u < 32; u += 8)
    if (m + u < L && c < D) out[(m + u) * D + c] = w[s[u] * D + c];
}

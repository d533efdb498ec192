// plan: launch k<<<cdiv(D, 32), 32>>>(b, ids, x, out, L, V, D)
extern "C" __global__ void k(const float* b, const long long* ids, const float* x, float* out, int L, int V, int D) {
  int c = blockIdx.x * 32 + threadIdx.x;
  if (c >= D) return;
  for (int v = 0; v < V; v++) out[v * D + c] = b[v * D + c];
  for (int m = 0; m < L; m++) out[ids[m] * D + c] += x[m * D + c];
}

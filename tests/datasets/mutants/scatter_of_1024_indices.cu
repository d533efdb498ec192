// mutant: the first 1,024 indices alone
// task: scatter_add_rows
// found by: shape D=3 L=1030 V=3
// plan: launch k<<<cdiv(V * D, 256), 256>>>(b, ids, x, out, L, V, D)
extern "C" __global__ void k(const float* b, const long long* ids, const float* x, float* out, int L, int V, int D) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= V * D) return;
  float a = b[i];
  for (int q = 0; q < min(L, 1024); q++) if (ids[q] == i / D) a += x[q * D + i % D];
  out[i] = a;
}

// plan: launch k<<<cdiv(V * D, 128), 128>>>(b, ids, x, out, L, V, D)
extern "C" __global__ void k(const float* b, const long long* ids, const float* x, float* out, int L, int V, int D) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= V * D) return;
  float a = b[i];
  for (int m = 0; m < L; m++)
    if (ids[m] == i / D) a += x[m * D + i % D];
  out[i] = a;
}

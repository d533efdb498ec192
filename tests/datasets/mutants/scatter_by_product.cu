// mutant: all rows times 0 or 1 added: NaN where another row has an infinity
// task: scatter_add_rows
// found by: x: mix(0.02, choice(nan, inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(V * D, 256), 256>>>(b, ids, x, out, L, V, D)
extern "C" __global__ void k(const float* b, const long long* ids, const float* x, float* out, int L, int V, int D) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= V * D) return;
  float a = b[i];
  for (int q = 0; q < L; q++) a += (ids[q] == i / D ? 1.f : 0.f) * x[q * D + i % D];
  out[i] = a;
}

// mutant: the first 1,024 columns alone
// task: gather_rows
// found by: shape D=1100 L=3 V=5
// plan: launch k<<<cdiv(L * D, 256), 256>>>(w, ids, out, L, V, D)
extern "C" __global__ void k(const float* w, const long long* ids, float* out, int L, int V, int D) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= L * D) return;
  out[i] = i % D < 1024 ? w[(int)ids[i / D] * D + i % D] : 0.f;
}

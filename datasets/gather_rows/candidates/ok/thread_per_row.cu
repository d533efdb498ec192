// plan: launch k<<<cdiv(L, 64), 64>>>(w, ids, out, L, D)
extern "C" __global__ void k(const float* w, const long long* ids, float* out, int L, int D) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= L) return;
  long long r = ids[m];
  for (int c = 0; c < D; c++) out[m * D + c] = w[r * D + c];
}

// plan: temp t int32[L]
// plan: launch k1<<<cdiv(L, 256), 256>>>(ids, t, L, D)
// plan: launch k2<<<dim3(cdiv(L, 8), cdiv(D, 32)), 32>>>(w, t, out, L, D)
extern "C" __global__ void k1(const long long* ids, int* t, int L, int D) {
  int m = blockIdx.x * 256 + threadIdx.x;
  if (m < L) t[m] = (int)ids[m] * D;
}
extern "C" __global__ void k2(const float* w, const int* t, float* out, int L, int D) {
  int c = blockIdx.y * 32 + threadIdx.x;
  if (c >= D) return;
  int m = blockIdx.x * 8;
  for (int e = min(m + 8, L); m < e; m++) out[m * D + c] = w[t[m] + c];
}

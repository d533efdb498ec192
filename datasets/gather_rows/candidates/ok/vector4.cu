// plan: if D % 4 == 0
// plan: launch k4<<<cdiv(L * (D / 4), 128), 128>>>(w, ids, out, L, D / 4)
// plan: else
// plan: launch k<<<dim3(cdiv(D, 128), L), 128>>>(w, ids, out, D)
// plan: end
extern "C" __global__ void k4(const float4* w, const long long* ids, float4* out, int L, int Q) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < L * Q) out[i] = w[ids[i / Q] * Q + i % Q];
}
extern "C" __global__ void k(const float* w, const long long* ids, float* out, int D) {
  int c = blockIdx.x * 128 + threadIdx.x;
  if (c < D) out[blockIdx.y * D + c] = w[ids[blockIdx.y] * D + c];
}

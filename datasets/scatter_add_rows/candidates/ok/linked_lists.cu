// plan: temp head int32[V]
// plan: temp next int32[L]
// plan: fill head -1
// plan: launch k1<<<cdiv(L, 64), 64>>>(ids, head, next, L)
// plan: launch k2<<<V, 64>>>(b, x, head, next, out, D)
extern "C" __global__ void k1(const long long* ids, int* head, int* next, int L) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m < L) next[m] = atomicExch(head + ids[m], m);
}
extern "C" __global__ void k2(const float* b, const float* x, const int* head, const int* next, float* out, int D) {
  for (int c = threadIdx.x; c < D; c += 64) {
    float a = b[blockIdx.x * D + c];
    for (int m = head[blockIdx.x]; m >= 0; m = next[m]) a += x[m * D + c];
    out[blockIdx.x * D + c] = a;
  }
}

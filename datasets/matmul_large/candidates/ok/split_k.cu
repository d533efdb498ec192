// plan: let S = 4
// plan: fill out 0
// plan: launch k<<<dim3(cdiv(N, 64), M, S), 64>>>(x, w, out, N, K, cdiv(K, S))
extern "C" __global__ void k(const float* x, const float* w, float* out, int N, int K, int T) {
  int c = blockIdx.x * 64 + threadIdx.x;
  int m = blockIdx.y;
  int q = blockIdx.z * T;
  if (c >= N) return;
  float a = 0.f;
  for (int e = min(q + T, K); q < e; q++) a += x[m * K + q] * w[q * N + c];
  atomicAdd(out + m * N + c, a);
}

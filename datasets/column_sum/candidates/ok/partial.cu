// plan: let T = cdiv(M, 16)
// plan: temp t float32[T, N]
// plan: launch k1<<<dim3(cdiv(N, 256), T), 256>>>(x, t, M, N)
// plan: launch k2<<<cdiv(N, 256), 256>>>(t, out, T, N)
extern "C" __global__ void k1(const float* x, float* t, int M, int N) {
  int c = blockIdx.x * 256 + threadIdx.x;
  if (c >= N) return;
  float a = 0.f;
  for (int u = 0; u < 16; u++) {
    int m = blockIdx.y * 16 + u;
    if (m < M) a += x[m * N + c];
  }
  t[blockIdx.y * N + c] = a;
}
extern "C" __global__ void k2(const float* t, float* out, int T, int N) {
  int c = blockIdx.x * 256 + threadIdx.x;
  if (c >= N) return;
  float a = 0.f;
  for (int u = 0; u < T; u++) a += t[u * N + c];
  out[c] = a;
}

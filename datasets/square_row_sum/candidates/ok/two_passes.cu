// plan: temp t float32[M, N]
// plan: launch k1<<<dim3(cdiv(N, 256), M), 256>>>(x, t, M, N)
// plan: launch k2<<<cdiv(M, 64), 64>>>(t, out, M, N)
extern "C" __global__ void k1(const float* x, float* t, int M, int N) {
  int c = blockIdx.x * 256 + threadIdx.x;
  int i = blockIdx.y * N + c;
  if (c < N) t[i] = x[i] * x[i];
}
extern "C" __global__ void k2(const float* t, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a = 0.f;
  for (int c = 0; c < N; c++) a += t[m * N + c];
  out[m] = a;
}

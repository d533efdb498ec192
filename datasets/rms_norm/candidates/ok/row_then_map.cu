// plan: temp t float32[M]
// plan: launch k1<<<cdiv(M, 64), 64>>>(x, t, eps, M, N)
// plan: launch k2<<<dim3(cdiv(N, 256), M), 256>>>(x, w, t, out, M, N)
extern "C" __global__ void k1(const float* x, float* t, float eps, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a = 0.f;
  for (int c = 0; c < N; c++) a += x[m * N + c] * x[m * N + c];
  t[m] = rsqrtf(a / N + eps);
}
extern "C" __global__ void k2(const float* x, const float* w, const float* t, float* out, int M, int N) {
  int c = blockIdx.x * 256 + threadIdx.x;
  int i = blockIdx.y * N + c;
  if (c >= N) return;
  float v = t[blockIdx.y];
  out[i] = x[i] * v * w[c];
}
